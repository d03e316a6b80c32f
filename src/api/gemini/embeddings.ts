import type { AttemptRoute, CallParts } from '../../chat/call.ts';
import {
  attemptEmbedding,
  priceEmbeddingRequest,
  type EmbeddingParts,
  type PricedEmbeddingRequest,
} from '../../chat/embed.ts';
import type { JsonObject } from '../../catalog/model.ts';
import { isRecord } from '../../lib/is-record.ts';
import type { Answer, Call } from '../../http/endpoint.ts';
import { isObject, mistake, needObject, needText, notCarried, readCount, readList } from '../../styles/fields.ts';
import { inOneForm } from '../../styles/gemini/names.ts';
import { refuseBlocked } from '../blocked.ts';
import { answerWhole } from '../chat.ts';
import { callerOf } from '../chat-request.ts';

/** The parts of the app that embeddings take. */
export type EmbedParts = CallParts & EmbeddingParts;

/** `embedContent`, or `batchEmbedContents` with several: as calls of /v1/embeddings, whose vectors are written anew. */
export async function embedContents(app: EmbedParts, call: Call, model: string, is_batch: boolean): Promise<Answer> {
  refuseBlocked(call.caller);
  const requests = requestsIn(isObject(call.body) ? call.body : {}, is_batch);
  const { caller, request_id } = call;
  const priced = priceEmbeddingRequest(app.catalog, { caller, request_id, body: { model, ...bodyOf(requests) } });
  const attempt: AttemptRoute<PricedEmbeddingRequest> = (request, route, context) =>
    attemptEmbedding(app, request, route, context);
  const { body, ...answer } = await answerWhole(app, priced, attempt, callerOf({}, call));
  if (!Buffer.isBuffer(body)) return { ...answer, body: '' }; // the caller is gone
  const embeddings = vectorsIn(body).map((values) => ({ values }));
  return { ...answer, body: is_batch ? { embeddings } : { embedding: embeddings[0] } };
}

type EmbedRequest = { request: JsonObject; at: string };

function requestsIn(body: JsonObject, is_batch: boolean): EmbedRequest[] {
  if (!is_batch) return [{ request: inOneForm(body), at: '' }];
  const requests = readList(body, 'requests', 'requests') ?? [];
  if (requests.length === 0) throw mistake('requests', 'must not be empty');
  return requests.map((each, index) => ({
    request: inOneForm(needObject(each, `requests[${index}]`)),
    at: `requests[${index}].`,
  }));
}

function bodyOf(requests: readonly EmbedRequest[]): JsonObject {
  const input = requests.map(({ request, at }) => textIn(request, at));
  const sizes = requests.map(({ request, at }) =>
    readCount(request, 'outputDimensionality', `${at}outputDimensionality`, 1),
  );
  const [dimensions] = sizes;
  const other = sizes.findIndex((size) => size !== dimensions);
  if (other !== -1)
    throw mistake(`${requests[other]?.at ?? ''}outputDimensionality`, 'must be the same in all requests');
  return { input, ...(dimensions !== undefined && { dimensions }) };
}

function textIn(request: JsonObject, at: string): string {
  const where = `${at}content`;
  const parts = readList(needObject(request['content'], where), 'parts', `${where}.parts`) ?? [];
  const texts = parts.map((value, index) => {
    const here = `${where}.parts[${index}]`;
    const part = needObject(value, here);
    if (part['text'] === undefined) throw notCarried(here, 'A part other than text');
    return needText(part, 'text', `${here}.text`);
  });
  return texts.join('\n');
}

function vectorsIn(bytes: Buffer): number[][] {
  const body: unknown = JSON.parse(bytes.toString('utf8'));
  const data = isRecord(body) && Array.isArray(body['data']) ? body['data'].filter(isObject) : [];
  return data.map(({ embedding }) => (Array.isArray(embedding) ? embedding.map(Number) : []));
}
