import { createHash, createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { HmacKey } from '../../../src/catalog/model.ts';
import { signByHmac } from '../../../src/providers/http/hmac-signature.ts';
import { signForTencent } from '../../../src/providers/http/tencent-signature.ts';
import { signForVolcengine } from '../../../src/providers/http/volcengine-signature.ts';

const signatureIn = (headers: Record<string, string>) =>
  /Signature=([0-9a-f]{64})$/.exec(headers['authorization'] ?? '')?.[1];

describe('a signature of Tencent Cloud', () => {
  const body = Buffer.from(
    String.raw`{"Limit": 1, "Filters": [{"Values": ["\u672a\u547d\u540d"], "Name": "instance-name"}]}`,
  );
  const request = {
    method: 'POST',
    origin: 'https://cvm.tencentcloudapi.com',
    path: '/',
    headers: { 'content-type': 'application/json; charset=utf-8' },
    body,
  };
  const key = {
    secret_id: 'AKIDz8krbsJ5yKBZQpn74WFkmLPx3EXAMPLE',
    service: 'cvm',
    region: 'ap-guangzhou',
    version: '2017-03-12',
  };
  const now_ms = 1_551_113_065_000;

  /** The examples in "Signature v3" of cloud.tencent.com/document/api/213/30654 and of tencentcloud.com. */
  it.each([
    ['Gu5t9xGARNpq86cd98joQYCN3EXAMPLE', '72e494ea809ad7a8c8f7a4507b9bddcbaa8e581f516e8da2f66e2c5a96525168'],
    ['Gu5t9xGARNpq86cd98joQYCN3*******', '2230eefd229f582d8b1b891af7107b91597240707d778ab3738f756258d7652c'],
  ])('is that of the published example with the key %s', (secret_key, signature) => {
    const headers = signForTencent(request, { ...key, secret_key }, now_ms);
    expect(signatureIn(headers)).toBe(signature);
    expect(headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'x-tc-timestamp': '1551113065',
      'x-tc-region': 'ap-guangzhou',
      'x-tc-version': '2017-03-12',
      authorization: expect.stringMatching(
        /^TC3-HMAC-SHA256 Credential=AKIDz8krbsJ5yKBZQpn74WFkmLPx3EXAMPLE\/2019-02-25\/cvm\/tc3_request, SignedHeaders=content-type;host, /,
      ),
    });
  });

  it('covers the action, in small letters, and the day is that of Greenwich', () => {
    const headers = { ...request.headers, 'X-TC-Action': 'DescribeInstances' };
    const at = Date.parse('2026-11-27T00:00:01+08:00');
    const signed = signForTencent({ ...request, headers }, { ...key, secret_key: 'secret' }, at);
    expect(signed['authorization']).toContain(
      '/2026-11-26/cvm/tc3_request, SignedHeaders=content-type;host;x-tc-action, ',
    );
    expect(signed['x-tc-action']).toBe('DescribeInstances');
    const sha = (text: string | Buffer) => createHash('sha256').update(text).digest('hex');
    const mac = (with_key: string | Buffer, text: string) => createHmac('sha256', with_key).update(text).digest();
    const canonical = `POST\n/\n\ncontent-type:application/json; charset=utf-8\nhost:cvm.tencentcloudapi.com\nx-tc-action:describeinstances\n\ncontent-type;host;x-tc-action\n${sha(body)}`;
    const text = `TC3-HMAC-SHA256\n${at / 1000}\n2026-11-26/cvm/tc3_request\n${sha(canonical)}`;
    const last = mac(mac(mac('TC3secret', '2026-11-26'), 'cvm'), 'tc3_request');
    expect(signatureIn(signed)).toBe(createHmac('sha256', last).update(text).digest('hex'));
  });
});

describe('a signature of Volcengine', () => {
  const key = { access_key_id: 'AKLTexample', secret_access_key: 'c2VjcmV0', region: 'cn-north-1', service: 'cv' };
  const now_ms = Date.parse('2026-11-27T18:05:09.123Z');

  /** The steps of volc-sdk-nodejs (src/base/sign.ts), written anew: no prefix of the key, `request` at its end. */
  function expected(canonical: string): string {
    const mac = (with_key: string | Buffer, text: string) => createHmac('sha256', with_key).update(text).digest();
    const scope = '20261127/cn-north-1/cv/request';
    const digest = createHash('sha256').update(canonical).digest('hex');
    const last = mac(mac(mac(mac('c2VjcmV0', '20261127'), 'cn-north-1'), 'cv'), 'request');
    return createHmac('sha256', last).update(`HMAC-SHA256\n20261127T180509Z\n${scope}\n${digest}`).digest('hex');
  }

  it('is what its own SDK computes, over the sorted query and the body', () => {
    const body = Buffer.from('{"req_key":"jimeng"}');
    const digest = createHash('sha256').update(body).digest('hex');
    const headers = signForVolcengine(
      {
        method: 'POST',
        origin: 'https://visual.volcengineapi.com',
        path: '/?Version=2022-08-31&Action=CVProcess&x=a%20b*',
        headers: { 'Content-Type': 'application/json', 'user-agent': 'Medley' },
        body,
      },
      key,
      now_ms,
    );
    const names = 'content-type;host;x-content-sha256;x-date';
    const canonical = [
      'POST',
      '/',
      'Action=CVProcess&Version=2022-08-31&x=a%20b%2A',
      'content-type:application/json',
      'host:visual.volcengineapi.com',
      `x-content-sha256:${digest}`,
      'x-date:20261127T180509Z',
      '',
      names,
      digest,
    ].join('\n');
    expect(headers).toMatchObject({
      'x-date': '20261127T180509Z',
      'x-content-sha256': digest,
      authorization: `HMAC-SHA256 Credential=AKLTexample/20261127/cn-north-1/cv/request, SignedHeaders=${names}, Signature=${expected(canonical)}`,
    });
  });

  it('covers a token of the session, and needs no body', () => {
    const request = {
      method: 'GET',
      origin: 'https://open.volcengineapi.com',
      path: '/a',
      headers: {},
      body: undefined,
    };
    const headers = signForVolcengine(request, { ...key, session_token: 'STS token' }, now_ms);
    const empty = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
    const canonical = `GET\n/a\n\nhost:open.volcengineapi.com\nx-content-sha256:${empty}\nx-date:20261127T180509Z\nx-security-token:STS token\n\nhost;x-content-sha256;x-date;x-security-token\n${empty}`;
    expect(signatureIn(headers)).toBe(expected(canonical));
    expect(headers['x-security-token']).toBe('STS token');
  });
});

describe('a signature by HMAC', () => {
  const request = {
    method: 'POST',
    origin: 'https://api.example.com',
    path: '/api/generate?b=2&a=1',
    headers: { 'content-type': 'application/json' },
    body: Buffer.from('{}'),
  };
  const key: HmacKey = {
    secret: '0b'.repeat(20),
    secret_encoding: 'hex',
    algorithm: 'sha256',
    encoding: 'hex',
    timestamp: 'seconds',
    text: 'Hi There',
    headers: { Signature: '$signature' },
    query: {},
  };
  const now = { now_ms: Date.parse('2026-11-27T18:05:09.123Z'), nonce: 'abc' };

  /** The first test case of RFC 4231 (4.2) and of RFC 2202 (3), whose keys are twenty bytes 0x0b. */
  it.each([
    ['sha1', 'b617318655057264e28bc0b6fb378c8ef146be00'],
    ['sha256', 'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7'],
    ['sha384', 'afd03944d84895626b0825f4ab46907f15f9dadbe4101ec682aa034c7cebc59cfaea9ea9076ede7f4af152e8b2fa9cb6'],
    [
      'sha512',
      '87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cdedaa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854',
    ],
  ] as const)('is that of the RFC with %s', (algorithm, expected) => {
    expect(signByHmac(request, { ...key, algorithm }, now)).toMatchObject({
      headers: { 'content-type': 'application/json', signature: expected },
      path: request.path,
    });
  });

  /** Shape of LiblibAI's: `uri & timestamp & nonce` by SHA-1, all of it in the query. */
  it('may stand in the query, which is signed before', () => {
    const text = '$path&$timestamp&$nonce';
    const query = { AccessKey: '$key_id', Signature: '$signature', Timestamp: '$timestamp', SignatureNonce: '$nonce' };
    const names = { secret: 'shh', key_id: 'AK', headers: {}, query, text };
    const { secret_encoding: _, ...plain } = key;
    const signing: HmacKey = {
      ...plain,
      ...names,
      algorithm: 'sha1',
      encoding: 'base64url',
      timestamp: 'milliseconds',
    };
    const { path, headers } = signByHmac(request, signing, now);
    const expected = createHmac('sha1', 'shh').update(`/api/generate&${now.now_ms}&abc`).digest('base64url');
    expect(headers).toEqual(request.headers);
    expect(Object.fromEntries(new URL(path, request.origin).searchParams)).toEqual({
      b: '2',
      a: '1',
      AccessKey: 'AK',
      Signature: expected,
      Timestamp: String(now.now_ms),
      SignatureNonce: 'abc',
    });
  });

  it('reads no template in what it signs, and writes the time as ISO 8601 where that is wanted', () => {
    const text = '$timestamp|$query|$content_type|$body_md5_base64|$$|$body';
    const body = Buffer.from('$nonce $$');
    const signed = signByHmac({ ...request, body }, { ...key, text, timestamp: 'iso' }, now);
    const md5 = createHash('md5').update(body).digest('base64');
    const whole = `2026-11-27T18:05:09.123Z|a=1&b=2|application/json|${md5}|$|$nonce $$`;
    const expected = createHmac('sha256', Buffer.alloc(20, 0x0b)).update(whole).digest('hex');
    expect(signed.headers['signature']).toBe(expected);
  });
});
