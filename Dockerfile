# The image of apns-mock: docker build --tag apns-mock .
#
# Images are pinned to the digest of their multi-platform index. For another version, take the digest that
# `docker buildx imagetools inspect IMAGE:TAG` prints first, and change the workflow packages.yml as well.
FROM swift:6.2-bookworm@sha256:da5a812247285bddb8cf3a242f882a3affa156f34deb16df1b3267efe7129aff AS build

# Seconds since 1970, the date in the package. BuildKit sets it from the variable of the same name.
ARG SOURCE_DATE_EPOCH
WORKDIR /source
COPY . .
# The cache keeps object files, so that another build compiles only what has changed.
RUN --mount=type=cache,target=/source/.build \
    Distribution/image-build /package

FROM debian:12-slim@sha256:3783cc01769c7b2b1b83a5c5ad96c815348e28ed7da68e2e3687004faa906251

LABEL org.opencontainers.image.title="apns-mock" \
      org.opencontainers.image.description="Mock server for the Apple Push Notification service (APNs)" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.vendor="the apns-mock contributors" \
      org.opencontainers.image.url="https://github.com/apns-mock/apns-mock" \
      org.opencontainers.image.source="https://github.com/apns-mock/apns-mock" \
      org.opencontainers.image.documentation="https://github.com/apns-mock/apns-mock#readme"

RUN --mount=type=bind,from=build,source=/package,target=/dist \
    --mount=type=bind,source=Distribution/image-setup,target=/image-setup \
    /image-setup /dist

# Settings, so that every command in the container finds the server, and `docker run apns-mock serve --profile …` keeps
# them. Other containers reach the server as apns-mock, which it accepts by default, or through the host.
ENV APNS_MOCK_APNS=0.0.0.0:2197 \
    APNS_MOCK_ADMIN=0.0.0.0:8197 \
    APNS_MOCK_ALLOW_HOST=host.docker.internal \
    APNS_MOCK_CERTS=/certs

# The id of the user apns-mock: an orchestrator can verify that a number is not root.
USER 2197:2197
WORKDIR /certs
VOLUME /certs
EXPOSE 2197 8197
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s CMD ["apns-mock", "healthcheck"]
ENTRYPOINT ["apns-mock"]
CMD ["serve"]
