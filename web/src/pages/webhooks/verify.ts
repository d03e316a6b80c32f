/**
 * Code that verifies a webhook, in four languages, by the headers of Standard Webhooks: they sign the time,
 * too. A test runs what can be run.
 */
export const verify_snippets: readonly { name: string; text: string }[] = [
  {
    name: 'Node',
    text: `import { createHmac, timingSafeEqual } from 'node:crypto';

// body: the bytes as they came, before any JSON.parse; headers: names in lower case
export function verify(body, headers, secret) {
  const id = headers['webhook-id'] ?? '';
  const timestamp = headers['webhook-timestamp'] ?? '';
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) < 300)) return false; // too old: a replay
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const expected = createHmac('sha256', key).update(\`\${id}.\${timestamp}.\`).update(body).digest();
  return (headers['webhook-signature'] ?? '').split(' ').some((signature) => {
    const actual = Buffer.from(signature.replace(/^v1,/, ''), 'base64');
    return actual.length === expected.length && timingSafeEqual(actual, expected);
  });
}`,
  },
  {
    name: 'Python',
    text: `import base64, hashlib, hmac, time

# body: the bytes as they came, before any json.loads; headers: names in lower case
def verify(body: bytes, headers, secret: str) -> bool:
    id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > 300:
        return False  # too old: a replay
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    expected = "v1," + base64.b64encode(digest).decode()
    given = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(signature.encode(), expected.encode()) for signature in given)`,
  },
  {
    name: 'Go',
    text: `package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// body: the bytes as they came, before any json.Unmarshal
func Verify(body []byte, headers http.Header, secret string) bool {
	id, timestamp := headers.Get("webhook-id"), headers.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || math.Abs(float64(time.Now().Unix()-seconds)) > 300 {
		return false // too old: a replay
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	expected := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	for _, given := range strings.Split(headers.Get("webhook-signature"), " ") {
		if hmac.Equal([]byte(given), expected) {
			return true
		}
	}
	return false
}`,
  },
  {
    name: 'PHP',
    text: `<?php

// $body: file_get_contents('php://input'), before any json_decode; $headers: names in lower case
function verify(string $body, array $headers, string $secret): bool
{
    $id = $headers['webhook-id'] ?? '';
    $timestamp = $headers['webhook-timestamp'] ?? '';
    if (!ctype_digit($timestamp) || abs(time() - (int) $timestamp) > 300) {
        return false; // too old: a replay
    }
    $key = base64_decode(preg_replace('/^whsec_/', '', $secret));
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
    foreach (explode(' ', $headers['webhook-signature'] ?? '') as $given) {
        if (hash_equals($expected, $given)) {
            return true;
        }
    }
    return false;
}`,
  },
];
