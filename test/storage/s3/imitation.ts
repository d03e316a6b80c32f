import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { crc32 } from 'node:zlib';
import { refusalOf, sha256, type Keys } from './signature.ts';

/** One bucket as the REST API of S3 documents it, with the operations that Medley uses, over HTTP on loopback. */

export type Operation =
  | 'PutObject'
  | 'GetObject'
  | 'HeadObject'
  | 'DeleteObjects'
  | 'ListObjectsV2'
  | 'CreateMultipartUpload'
  | 'UploadPart'
  | 'CompleteMultipartUpload'
  | 'AbortMultipartUpload'
  | 'ListMultipartUploads';

/**
 * `slow`: 503 SlowDown. `reset`: the connection ends without an answer. `hang`: no answer at all. `denied`: 403.
 * `cut`: the connection ends in the middle of the body, the caller's or ours. `lost`: all is done, but nobody hears of it.
 */
export type Fault = 'slow' | 'reset' | 'hang' | 'denied' | 'cut' | 'lost';

type StoredObject = { bytes: Buffer; etag: string; headers: Record<string, string> };
type Upload = {
  key: string;
  initiated: Date;
  headers: Record<string, string>;
  /** The checksum that is announced, which then each part has to have, at its arrival and at the end; else none. */
  checksum?: string | undefined;
  parts: Map<number, Buffer>;
};

export class S3Imitation {
  readonly bucket = 'files-of-tests';
  readonly keys: Keys = { access_key_id: 'AKIDEXAMPLE', secret_access_key: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };
  /** By key, prefix included. */
  readonly objects = new Map<string, StoredObject>();
  /** By upload id. */
  readonly uploads = new Map<string, Upload>();
  readonly operations: Operation[] = [];
  /** Entries of one page of a list. */
  page_max = 1_000;
  /** The trouble with an operation. */
  fault: (operation: Operation) => Fault | undefined = () => undefined;
  now: () => number = Date.now;
  endpoint = '';
  readonly #server = createServer((request, response) => {
    this.#answer(request, response).catch(() => request.destroy());
  });

  static async start(): Promise<S3Imitation> {
    const imitation = new S3Imitation();
    imitation.#server.listen(0, '127.0.0.1');
    await once(imitation.#server, 'listening');
    const { port } = imitation.#server.address() as AddressInfo;
    imitation.endpoint = `http://127.0.0.1:${port}`;
    return imitation;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '', 'http://imitation');
    const [, bucket, ...rest] = decodeURIComponent(url.pathname).split('/');
    const key = rest.join('/');
    const operation = operationOf(request.method ?? '', key, url.searchParams);
    if (!operation) return sendError(response, 501, 'NotImplemented');
    this.operations.push(operation);
    const fault = this.fault(operation);
    if (fault === 'reset' || (fault === 'cut' && operation !== 'GetObject')) return void request.socket.destroy();
    if (fault === 'hang') return;
    const body = await buffer(request);
    if (fault === 'slow') return sendError(response, 503, 'SlowDown');
    const refusal = fault === 'denied' ? 'AccessDenied' : refusalOf(request, this.keys, this.now());
    if (refusal !== undefined) return sendError(response, 403, refusal);
    if (bucket !== this.bucket) return sendError(response, 404, 'NoSuchBucket');
    const damage = damageOf(request, body);
    if (damage !== undefined) return sendError(response, 400, damage);
    if (fault === 'lost') response.writeHead = () => response.destroy();
    this.#operations[operation]({ request, response, query: url.searchParams, key, body, is_cut: fault === 'cut' });
  }

  readonly #operations: Record<Operation, (call: Call) => void> = {
    PutObject: ({ request, response, key, body }) => {
      const etag = quoted(md5(body));
      this.objects.set(key, { bytes: body, etag, headers: storedHeaders(request) });
      response.writeHead(200, { etag }).end();
    },
    HeadObject: (call) => this.#sendObject(call),
    GetObject: (call) => this.#sendObject(call),
    DeleteObjects: ({ request, response, body }) => {
      const { 'content-md5': hash, 'x-amz-checksum-crc32': checksum } = request.headers;
      if (hash === undefined && checksum === undefined) return sendError(response, 400, 'InvalidRequest');
      for (const [, key = ''] of body.toString().matchAll(/<Key>([^<]*)<\/Key>/g)) this.objects.delete(key);
      sendXml(response, '<DeleteResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"></DeleteResult>');
    },
    ListObjectsV2: ({ response, query }) => this.#list(response, query),
    CreateMultipartUpload: ({ request, response, key }) => {
      const id = randomUUID();
      const checksum = [request.headers['x-amz-checksum-algorithm']].flat()[0];
      const initiated = new Date(this.now());
      this.uploads.set(id, { key, initiated, headers: storedHeaders(request), checksum, parts: new Map() });
      const members = `<Bucket>${this.bucket}</Bucket><Key>${key}</Key><UploadId>${id}</UploadId>`;
      sendXml(response, `<InitiateMultipartUploadResult>${members}</InitiateMultipartUploadResult>`);
    },
    UploadPart: ({ request, response, query, body }) => {
      const upload = this.uploads.get(query.get('uploadId') ?? '');
      if (!upload) return sendError(response, 404, 'NoSuchUpload');
      const checksum = checksumOf(body);
      if (upload.checksum !== undefined && request.headers['x-amz-checksum-crc32'] !== checksum)
        return sendError(response, 400, 'InvalidRequest');
      upload.parts.set(Number(query.get('partNumber')), body);
      response.writeHead(200, { etag: quoted(md5(body)), 'x-amz-checksum-crc32': checksum }).end();
    },
    CompleteMultipartUpload: (call) => this.#complete(call),
    AbortMultipartUpload: ({ response, query }) => {
      if (!this.uploads.delete(query.get('uploadId') ?? '')) return sendError(response, 404, 'NoSuchUpload');
      response.writeHead(204).end();
    },
    ListMultipartUploads: ({ response, query }) => this.#listUploads(response, query),
  };

  #sendObject({ request, response, query, key, is_cut }: Call): void {
    const object = this.objects.get(key);
    if (!object) return sendError(response, 404, 'NoSuchKey', request.method === 'HEAD');
    const { bytes, etag, headers } = object;
    const { 'if-match': if_match, range } = request.headers;
    if (if_match !== undefined && if_match !== etag) return sendError(response, 412, 'PreconditionFailed');
    const [, first = '0', last = ''] = /^bytes=(\d+)-(\d*)$/.exec(range ?? '') ?? [];
    const start = Number(first);
    if (range !== undefined && start >= bytes.length) return sendError(response, 416, 'InvalidRange');
    const end = Math.min(last === '' ? Infinity : Number(last), bytes.length - 1);
    const part = bytes.subarray(start, end + 1);
    const type = query.get('response-content-type') ?? headers['content-type'] ?? 'binary/octet-stream';
    const disposition = query.get('response-content-disposition');
    response.writeHead(range === undefined ? 200 : 206, {
      ...headers,
      'content-type': type,
      'content-length': part.length,
      'accept-ranges': 'bytes',
      etag,
      ...(disposition !== null && { 'content-disposition': disposition }),
      ...(range !== undefined && { 'content-range': `bytes ${start}-${end}/${bytes.length}` }),
    });
    if (request.method === 'HEAD') return void response.end();
    if (!is_cut) return void response.end(part);
    response.write(part.subarray(0, Math.ceil(part.length / 2)), () => response.destroy());
  }

  #complete({ response, query, body }: Call): void {
    const id = query.get('uploadId') ?? '';
    const upload = this.uploads.get(id);
    if (!upload) return sendError(response, 404, 'NoSuchUpload');
    const stated = [...body.toString().matchAll(/<Part>(.*?)<\/Part>/gs)].map(([, part = '']) => ({
      number: Number(/<PartNumber>(\d+)</.exec(part)?.[1]),
      etag: /<ETag>([^<]*)</.exec(part)?.[1]?.replaceAll('&quot;', '"'),
      checksum: /<ChecksumCRC32>([^<]*)</.exec(part)?.[1],
    }));
    const parts = stated.map(({ number, etag, checksum }) => {
      const bytes = upload.parts.get(number);
      const expected = bytes && upload.checksum === 'CRC32' ? checksumOf(bytes) : undefined;
      return bytes && etag === quoted(md5(bytes)) && checksum === expected ? bytes : undefined;
    });
    const whole = parts.filter((part) => part !== undefined);
    if (whole.length < parts.length || parts.length === 0) return sendError(response, 400, 'InvalidPart');
    if (stated.some(({ number }, i) => number <= (stated[i - 1]?.number ?? 0)))
      return sendError(response, 400, 'InvalidPartOrder');
    if (whole.slice(0, -1).some((part) => part.length < 5 * 2 ** 20)) return sendError(response, 400, 'EntityTooSmall');
    this.uploads.delete(id);
    const etag = quoted(`${md5(Buffer.concat(whole.map((part) => Buffer.from(md5(part), 'hex'))))}-${whole.length}`);
    this.objects.set(upload.key, { bytes: Buffer.concat(whole), etag, headers: upload.headers });
    sendXml(response, `<CompleteMultipartUploadResult><ETag>${etag}</ETag></CompleteMultipartUploadResult>`);
  }

  #list(response: ServerResponse, query: URLSearchParams): void {
    const after = query.get('continuation-token') ?? '';
    const keys = [...this.objects.keys()].filter((key) => key.startsWith(query.get('prefix') ?? '') && key > after);
    const page = keys.toSorted().slice(0, this.page_max);
    const is_truncated = page.length < keys.length;
    const contents = page.map((key) => {
      const { bytes, etag } = this.objects.get(key) ?? { bytes: Buffer.alloc(0), etag: '' };
      return `<Contents><Key>${key}</Key><ETag>${etag}</ETag><Size>${bytes.length}</Size></Contents>`;
    });
    const token = is_truncated ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : '';
    const members = `<Name>${this.bucket}</Name><IsTruncated>${is_truncated}</IsTruncated>${token}${contents.join('')}`;
    sendXml(response, `<ListBucketResult>${members}</ListBucketResult>`);
  }

  #listUploads(response: ServerResponse, query: URLSearchParams): void {
    const [prefix, key_marker, id_marker] = ['prefix', 'key-marker', 'upload-id-marker'].map(
      (name) => query.get(name) ?? '',
    );
    const place = (key = '', id = '') => `${key} ${id}`;
    const all = [...this.uploads]
      .filter(([, { key }]) => key.startsWith(prefix ?? ''))
      .filter(([id, { key }]) => place(key, id) > place(key_marker, id_marker))
      .toSorted(([a, one], [b, other]) => (place(one.key, a) < place(other.key, b) ? -1 : 1));
    const page = all.slice(0, this.page_max);
    const [last_id = '', last] = page.at(-1) ?? [];
    const uploads = page.map(
      ([id, { key, initiated }]) =>
        `<Upload><Key>${key}</Key><UploadId>${id}</UploadId><Initiated>${initiated.toISOString()}</Initiated></Upload>`,
    );
    const is_truncated = page.length < all.length;
    const markers = `<NextKeyMarker>${last?.key ?? ''}</NextKeyMarker><NextUploadIdMarker>${last_id}</NextUploadIdMarker>`;
    const members = `<IsTruncated>${is_truncated}</IsTruncated>${is_truncated ? markers : ''}${uploads.join('')}`;
    sendXml(response, `<ListMultipartUploadsResult>${members}</ListMultipartUploadsResult>`);
  }
}

type Call = {
  request: IncomingMessage;
  response: ServerResponse;
  query: URLSearchParams;
  key: string;
  body: Buffer;
  is_cut: boolean;
};

function operationOf(method: string, key: string, query: URLSearchParams): Operation | undefined {
  const [is_part, is_upload] = [query.has('partNumber'), query.has('uploadId')];
  if (key === '') {
    if (method === 'POST' && query.has('delete')) return 'DeleteObjects';
    if (method === 'GET' && query.has('uploads')) return 'ListMultipartUploads';
    return method === 'GET' && query.get('list-type') === '2' ? 'ListObjectsV2' : undefined;
  }
  if (method === 'POST') return is_upload ? 'CompleteMultipartUpload' : 'CreateMultipartUpload';
  if (method === 'PUT') return is_part ? 'UploadPart' : 'PutObject';
  if (method === 'DELETE') return is_upload ? 'AbortMultipartUpload' : undefined;
  return method === 'GET' ? 'GetObject' : method === 'HEAD' ? 'HeadObject' : undefined;
}

/** A body is what its sender said that it is: length, SHA-256 of the signature, CRC-32, MD5. */
function damageOf({ headers }: IncomingMessage, body: Buffer): string | undefined {
  const { 'content-length': length, 'x-amz-content-sha256': hash, 'content-md5': md5_text } = headers;
  const checksum = headers['x-amz-checksum-crc32'];
  if (length !== undefined && Number(length) !== body.length) return 'IncompleteBody';
  if (typeof hash === 'string' && /^[0-9a-f]{64}$/.test(hash) && hash !== sha256(body))
    return 'XAmzContentSHA256Mismatch';
  if (typeof hash === 'string' && hash.startsWith('STREAMING-')) return 'NotImplemented';
  if (typeof md5_text === 'string' && Buffer.from(md5_text, 'base64').toString('hex') !== md5(body)) return 'BadDigest';
  return checksum === undefined || checksum === checksumOf(body) ? undefined : 'BadDigest';
}

function checksumOf(bytes: Buffer): string {
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(bytes));
  return sum.toString('base64');
}

const stored_names = ['content-type', 'x-amz-server-side-encryption', 'x-amz-server-side-encryption-aws-kms-key-id'];

function storedHeaders({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(
    stored_names.flatMap((name) => (typeof headers[name] === 'string' ? [[name, headers[name]]] : [])),
  );
}

function sendXml(response: ServerResponse, xml: string, status = 200): void {
  const body = `<?xml version="1.0" encoding="UTF-8"?>\n${xml}`;
  response
    .writeHead(status, { 'content-type': 'application/xml', 'content-length': Buffer.byteLength(body) })
    .end(body);
}

function sendError(response: ServerResponse, status: number, code: string, is_head = false): void {
  if (is_head) return void response.writeHead(status).end();
  sendXml(response, `<Error><Code>${code}</Code><Message>${code} of the imitation</Message></Error>`, status);
}

function md5(bytes: Buffer): string {
  return createHash('md5').update(bytes).digest('hex');
}

function quoted(text: string): string {
  return `"${text}"`;
}
