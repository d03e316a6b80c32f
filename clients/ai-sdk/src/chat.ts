import type {
  JSONObject,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
  LanguageModelV4Usage,
  SharedV4ProviderMetadata,
  SharedV4Warning,
} from '@ai-sdk/provider';
import { completeBody, sentSettings, splitOptions } from './chat-body.ts';
import { promptFor } from './chat-prompt.ts';
import { chatError } from './errors.ts';
import { responsesModel } from './inner-model.ts';
import { isJsonObject, owned } from './namespaces.ts';
import type { Connection } from './settings.ts';

/**
 * Options of every call that does not set them otherwise. Nothing is stored, and whatever the model thinks comes back
 * sealed: the service knows whether it thinks.
 */
const usual_options = {
  store: false,
  forceReasoning: true,
  systemMessageMode: 'system',
  passThroughUnsupportedFiles: true,
} as const satisfies JSONObject;

/** A chat model of the service, through its responses style. */
export class MedleyChatModel implements LanguageModelV4 {
  readonly specificationVersion = 'v4';
  readonly provider = 'medley.chat';
  readonly modelId: string;
  /** Every upstream takes links of images, or the service fetches them. Few take links of other files. */
  readonly supportedUrls = { 'image/*': [/^https?:\/\/.+$/] };
  readonly #connect: () => Connection;

  constructor(modelId: string, connect: () => Connection) {
    this.modelId = modelId;
    this.#connect = connect;
  }

  async doGenerate(options: LanguageModelV4CallOptions): Promise<LanguageModelV4GenerateResult> {
    const call = this.#prepare(options);
    const result = await call.model.doGenerate(call.options).then(undefined, (error: unknown) => {
      throw chatError(error, call.sent());
    });
    const { content, warnings, usage } = result;
    return {
      ...result,
      content: content.map(owned),
      warnings: call.withoutSent(warnings),
      request: { body: call.sent() },
      providerMetadata: metadataOf(result, usage, result.response?.headers),
    };
  }

  async doStream(options: LanguageModelV4CallOptions): Promise<LanguageModelV4StreamResult> {
    const call = this.#prepare(options);
    const result = await call.model.doStream(call.options).then(undefined, (error: unknown) => {
      throw chatError(error, call.sent());
    });
    const change = (part: LanguageModelV4StreamPart): LanguageModelV4StreamPart => {
      if (part.type === 'stream-start') return { ...part, warnings: call.withoutSent(part.warnings) };
      if (part.type === 'finish')
        return { ...part, providerMetadata: metadataOf(part, part.usage, result.response?.headers) };
      return 'providerMetadata' in part ? owned(part) : part;
    };
    const transform = new TransformStream<LanguageModelV4StreamPart, LanguageModelV4StreamPart>({
      transform: (part, controller) => controller.enqueue(change(part)),
    });
    return { ...result, stream: result.stream.pipeThrough(transform), request: { body: call.sent() } };
  }

  #prepare(options: LanguageModelV4CallOptions) {
    const { options: own, fields } = splitOptions(options.providerOptions?.['medley']);
    const settings = sentSettings(options);
    let sent: unknown;
    const model = responsesModel(this.#connect(), (body) => {
      const complete = completeBody(body, { model: this.modelId, fields, settings: settings.values() });
      sent = complete;
      return complete;
    });
    return {
      model,
      options: {
        ...options,
        prompt: promptFor(options.prompt),
        providerOptions: { openai: { ...usual_options, ...own } },
      },
      /** The body as it was sent. */
      sent: () => sent,
      withoutSent: (warnings: SharedV4Warning[]) =>
        warnings.filter((warning) => warning.type !== 'unsupported' || !settings.has(warning.feature)),
    };
  }
}

/** The request's id at the service, and what the call costs, in the currency of the account. */
function metadataOf(
  { providerMetadata }: { providerMetadata?: SharedV4ProviderMetadata },
  usage: LanguageModelV4Usage,
  headers: Record<string, string> = {},
): SharedV4ProviderMetadata {
  const { openai = {}, ...others } = providerMetadata ?? {};
  const request_id = headers['x-request-id'];
  const cost = costOf(usage, headers);
  return {
    ...others,
    medley: { ...openai, ...(request_id !== undefined && { requestId: request_id }), ...(cost && { cost }) },
  };
}

/** Whole answers have their cost in headers, streams in their usage. */
function costOf({ raw }: LanguageModelV4Usage, headers: Record<string, string>): JSONObject | undefined {
  const { 'x-cost-amount': amount, 'x-cost-currency': currency } = headers;
  if (amount !== undefined && currency !== undefined) return { amount, currency };
  const cost = isJsonObject(raw) ? raw['cost'] : undefined;
  return typeof cost === 'number' ? { amount: cost.toFixed(6) } : undefined;
}
