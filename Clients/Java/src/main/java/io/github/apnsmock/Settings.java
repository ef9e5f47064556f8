package io.github.apnsmock;

import java.net.URI;
import java.nio.file.Path;

/**
 * The values that a provider needs to send pushes to the server.
 *
 * @param host the address of the APNs listener
 * @param port the port of the APNs listener
 * @param url the base URL of the APNs listener, such as {@code https://127.0.0.1:40123}
 * @param ca the certificate authority to trust, in PEM
 * @param key the provider key, a {@code .p8} file
 * @param keyId the id of the provider key
 * @param teamId the team of the provider key
 * @param topic {@code com.example.app}; the server accepts every other topic too
 */
public record Settings(
    String host, int port, URI url, Path ca, Path key, String keyId, String teamId, String topic) {}
