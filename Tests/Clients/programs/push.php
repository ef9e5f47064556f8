<?php
// Pushes with PHP's curl extension: a JSON description on stdin, the last answer as JSON on stdout.
$push = json_decode(stream_get_contents(STDIN), true);
$headers = [];
foreach ($push["headers"] as $name => $value) {
    $headers[] = "$name: $value";
}
$apnsId = null;
$handle = curl_init("{$push['url']}/3/device/{$push['device']}");
curl_setopt_array($handle, [
    CURLOPT_HTTP_VERSION => $push["alpn"] ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE,
    CURLOPT_SSL_ENABLE_ALPN => $push["alpn"],
    CURLOPT_CAINFO => $push["ca"],
    CURLOPT_HTTPHEADER => $headers,
    CURLOPT_POSTFIELDS => $push["payload"],
    CURLOPT_RETURNTRANSFER => true,
    // A new connection for each push; the handle keeps the TLS session of the one before.
    CURLOPT_FRESH_CONNECT => true,
    CURLOPT_HEADERFUNCTION => function ($handle, $line) use (&$apnsId) {
        if (str_starts_with($line, "apns-id: ")) {
            $apnsId = trim(substr($line, 9));
        }
        return strlen($line);
    },
]);
if ($push["certificate"]) {
    curl_setopt($handle, CURLOPT_SSLCERT, $push["certificate"]);
    curl_setopt($handle, CURLOPT_SSLKEY, $push["certificate_key"]);
}
if ($push["tls"]) {
    $versions = [
        "1.2" => CURL_SSLVERSION_TLSv1_2 | CURL_SSLVERSION_MAX_TLSv1_2,
        "1.3" => CURL_SSLVERSION_TLSv1_3 | CURL_SSLVERSION_MAX_TLSv1_3,
    ];
    curl_setopt($handle, CURLOPT_SSLVERSION, $versions[$push["tls"]]);
}
if ($push["address"]) {
    curl_setopt($handle, CURLOPT_CONNECT_TO, ["{$push['host']}:{$push['port']}:{$push['address']}:{$push['port']}"]);
}
for ($count = 0; $count < $push["connections"]; $count++) {
    $body = curl_exec($handle);
    if ($body === false) {
        fwrite(STDERR, curl_error($handle) . "\n");
        exit(1);
    }
}
echo json_encode(["status" => curl_getinfo($handle, CURLINFO_RESPONSE_CODE), "apns_id" => $apnsId, "body" => $body]);
