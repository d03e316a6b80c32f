import type {
  EmbeddingModelV4,
  EmbeddingModelV4CallOptions,
  EmbeddingModelV4Result,
  JSONObject,
} from '@ai-sdk/provider';
import { chatError } from './errors.ts';
import { embeddingModel } from './inner-model.ts';
import type { Connection } from './settings.ts';

/** The service takes as many texts in one call as OpenAI does. */
const texts_max = 2048;

/** An embedding model of the service. `providerOptions.medley` has further fields of the request. */
export class MedleyEmbeddingModel implements EmbeddingModelV4 {
  readonly specificationVersion = 'v4';
  readonly provider = 'medley.embedding';
  readonly modelId: string;
  readonly maxEmbeddingsPerCall = texts_max;
  readonly supportsParallelCalls = true;
  readonly #connect: () => Connection;

  constructor(modelId: string, connect: () => Connection) {
    this.modelId = modelId;
    this.#connect = connect;
  }

  async doEmbed(options: EmbeddingModelV4CallOptions): Promise<EmbeddingModelV4Result> {
    const { providerOptions, ...others } = options;
    const { model: _, input: __, ...fields }: JSONObject = providerOptions?.['medley'] ?? {};
    let sent: unknown;
    const inner = embeddingModel(this.#connect(), (body) => {
      const complete = { ...body, ...fields, model: this.modelId };
      sent = complete;
      return complete;
    });
    const result = await Promise.resolve(inner.doEmbed(others)).catch((error: unknown) => {
      throw chatError(error, sent);
    });
    const {
      'x-cost-amount': amount,
      'x-cost-currency': currency,
      'x-request-id': requestId,
    } = result.response?.headers ?? {};
    const cost = amount !== undefined && currency !== undefined ? { cost: { amount, currency } } : {};
    return { ...result, providerMetadata: { medley: { ...cost, ...(requestId !== undefined && { requestId }) } } };
  }
}
