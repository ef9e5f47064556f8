<?php
// One push with PHP's curl extension: a JSON description on stdin, the answer as JSON on stdout.
$push = json_decode(stream_get_contents(STDIN), true);
$headers = [];
foreach ($push["headers"] as $name => $value) {
    $headers[] = "$name: $value";
}
$apnsId = null;
$handle = curl_init("{$push['url']}/3/device/{$push['device']}");
curl_setopt_array($handle, [
    CURLOPT_HTTP_VERSION => CURL_HTTP_VERSION_2TLS,
    CURLOPT_CAINFO => $push["ca"],
    CURLOPT_HTTPHEADER => $headers,
    CURLOPT_POSTFIELDS => $push["payload"],
    CURLOPT_RETURNTRANSFER => true,
    CURLOPT_HEADERFUNCTION => function ($handle, $line) use (&$apnsId) {
        if (str_starts_with($line, "apns-id: ")) {
            $apnsId = trim(substr($line, 9));
        }
        return strlen($line);
    },
]);
if (isset($push["certificate"])) {
    curl_setopt($handle, CURLOPT_SSLCERT, $push["certificate"]);
    curl_setopt($handle, CURLOPT_SSLKEY, $push["certificateKey"]);
}
$body = curl_exec($handle);
if ($body === false) {
    fwrite(STDERR, curl_error($handle) . "\n");
    exit(1);
}
echo json_encode(["status" => curl_getinfo($handle, CURLINFO_RESPONSE_CODE), "apnsId" => $apnsId, "body" => $body]);
