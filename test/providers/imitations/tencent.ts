import { createHash, createHmac } from 'node:crypto';
import {
  sampleFile,
  startImitation,
  type ReceivedRequest,
  type Imitation,
  type Reply,
  type Role,
} from './imitation.ts';

const sha = (data: string | Buffer) => createHash('sha256').update(data).digest('hex');
const mac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();

/** An error of Tencent Cloud, which comes with the status 200. */
export const tencentError = (Code: string, Message: string): Reply => ({
  json: { Response: { Error: { Code, Message }, RequestId: 'r' } },
});

/**
 * Hunyuan's images at Tencent Cloud (cloud.tencent.com/document/product/1668/124632 and 124633, November 2026): one path, the
 * action in a header, every request signed (TC3-HMAC-SHA256), and every answer 200.
 */
export async function startHunyuan(secret_key: string, now?: () => number): Promise<Imitation> {
  const file = await sampleFile('image');
  const polls = new Map<string, number>();
  const answer = (request: ReceivedRequest, { url }: { url: string }): Reply => {
    if (request.role === 'file') return { bytes: file, headers: { 'content-type': 'image/png' } };
    if (!isSigned(request, secret_key)) return tencentError('AuthFailure.SignatureFailure', 'The signature is wrong.');
    if (request.role === 'other') return tencentError('InvalidAction', 'There is no such action.');
    if (request.role === 'submit') {
      if (typeof request.json['Prompt'] !== 'string') return tencentError('MissingParameter', 'Prompt is missing.');
      const JobId = `1344-${polls.size}`;
      polls.set(JobId, 0);
      return { json: { Response: { JobId, RequestId: 'r' } } };
    }
    const JobId = String(request.json['JobId']);
    if (!polls.has(JobId)) return tencentError('FailedOperation.JobNotExist', 'There is no such job.');
    const polled = (polls.get(JobId) ?? 0) + 1;
    polls.set(JobId, polled);
    return hunyuanJob(polled < 2 ? '2' : '5', polled < 2 ? {} : { ResultImage: [`${url}/result/${JobId}`] });
  };
  return startImitation({ roleOf, answer }, now);
}

/** A job in a state: 1 waits, 2 is at work, 4 has failed, 5 is done. */
export const hunyuanJob = (JobStatusCode: string, more: object = {}): Reply => ({
  json: { Response: { JobStatusCode, JobErrorCode: '', JobErrorMsg: '', ResultImage: [], ...more, RequestId: 'r' } },
});

function roleOf({ method, path, headers }: Pick<ReceivedRequest, 'method' | 'path' | 'headers'>): Role {
  if (path.startsWith('/result/')) return 'file';
  if (method !== 'POST' || path !== '/' || headers['x-tc-version'] !== '2022-12-29') return 'other';
  if (headers['x-tc-action'] === 'SubmitTextToImageJob') return 'submit';
  return headers['x-tc-action'] === 'QueryTextToImageJob' ? 'poll' : 'other';
}

/** The signature as Tencent Cloud computes it from what has arrived. */
function isSigned({ method, path, headers, body }: ReceivedRequest, secret_key: string): boolean {
  const { authorization = '' } = headers;
  const names = /SignedHeaders=([^,]+)/.exec(authorization)?.[1] ?? '';
  const lines = names.split(';').map((name) => `${name}:${String(headers[name]).trim().toLowerCase()}\n`);
  const canonical = [method, path, '', lines.join(''), names, sha(body)].join('\n');
  const scope = /Credential=[^/]+\/([^,]+)/.exec(authorization)?.[1] ?? '';
  const text = ['TC3-HMAC-SHA256', String(headers['x-tc-timestamp']), scope, sha(canonical)].join('\n');
  const key = scope.split('/').reduce<string | Buffer>((so_far, step) => mac(so_far, step), `TC3${secret_key}`);
  return names.includes('x-tc-action') && authorization.endsWith(`Signature=${mac(key, text).toString('hex')}`);
}
