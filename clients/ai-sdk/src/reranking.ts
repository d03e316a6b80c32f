import {
  InvalidResponseDataError,
  type JSONObject,
  type RerankingModelV4,
  type RerankingModelV4CallOptions,
  type RerankingModelV4Result,
} from '@ai-sdk/provider';
import {
  createJsonErrorResponseHandler,
  createJsonResponseHandler,
  jsonSchema,
  postJsonToApi,
} from '@ai-sdk/provider-utils';
import { chatError } from './errors.ts';
import { isObject } from './namespaces.ts';
import { setHeaders, type Connection } from './settings.ts';

/** A rerank model of the service. `providerOptions.medley` has further fields of the request. */
export class MedleyRerankingModel implements RerankingModelV4 {
  readonly specificationVersion = 'v4';
  readonly provider = 'medley.reranking';
  readonly modelId: string;
  readonly #connect: () => Connection;

  constructor(modelId: string, connect: () => Connection) {
    this.modelId = modelId;
    this.#connect = connect;
  }

  async doRerank(options: RerankingModelV4CallOptions): Promise<RerankingModelV4Result> {
    const { documents, query, topN, abortSignal, providerOptions, headers } = options;
    const { base_url, api_key, headers: own, fetch } = this.#connect();
    const fields: JSONObject = providerOptions?.['medley'] ?? {};
    const texts = documents.type === 'text' ? documents.values : documents.values.map((value) => JSON.stringify(value));
    const body = {
      ...fields,
      model: this.modelId,
      query,
      documents: texts,
      ...(topN !== undefined && { top_n: topN }),
    };
    const answer = await postJsonToApi({
      url: `${base_url}/v1/rerank`,
      headers: { ...own, ...setHeaders(headers), authorization: `Bearer ${api_key}` },
      body,
      successfulResponseHandler: createJsonResponseHandler(jsonSchema<unknown>({})),
      failedResponseHandler: createJsonErrorResponseHandler({
        errorSchema: jsonSchema<unknown>({}),
        errorToMessage: (data) => messageIn(data) ?? 'The service answered with an error.',
      }),
      fetch: (input, init) => fetch(input, { ...init, redirect: 'error' }),
      ...(abortSignal && { abortSignal }),
    }).catch((error: unknown) => {
      throw chatError(error, body);
    });
    const { 'x-cost-amount': amount, 'x-cost-currency': currency } = answer.responseHeaders ?? {};
    return {
      ranking: readRanking(answer.value),
      response: {
        modelId: this.modelId,
        body: answer.rawValue,
        ...(answer.responseHeaders && { headers: answer.responseHeaders }),
      },
      ...(amount !== undefined &&
        currency !== undefined && { providerMetadata: { medley: { cost: { amount, currency } } } }),
    };
  }
}

function messageIn(data: unknown): string | undefined {
  const error = isObject(data) ? data['error'] : undefined;
  return isObject(error) && typeof error['message'] === 'string' ? error['message'] : undefined;
}

function readRanking(value: unknown): RerankingModelV4Result['ranking'] {
  const results = isObject(value) ? value['results'] : undefined;
  if (!Array.isArray(results)) throw new InvalidResponseDataError({ data: value });
  return results.map((each: unknown) => {
    const { index, relevance_score: relevanceScore } = isObject(each) ? each : {};
    if (typeof index !== 'number' || typeof relevanceScore !== 'number')
      throw new InvalidResponseDataError({ data: value });
    return { index, relevanceScore };
  });
}
