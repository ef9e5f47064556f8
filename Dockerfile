# The image of apns-mock. Run `make dist` first, then: docker build --tag apns-mock .
FROM debian:12-slim

RUN --mount=type=bind,source=.build/dist,target=/dist \
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
