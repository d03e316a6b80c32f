import type {
  JSONObject,
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ReasoningPart,
  LanguageModelV4ToolResultPart,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider';
import { convertUint8ArrayToBase64 } from '@ai-sdk/provider-utils';
import { isJsonObject } from './namespaces.ts';

/**
 * Stands for the seal of a thought that has none. `@ai-sdk/openai` leaves such thoughts out; some upstreams, such as
 * DeepSeek, want them back. `chat-body.ts` takes it away again.
 */
export const unsealed = 'medley:unsealed';

/** Wraps `cacheControl` in the one option of a part that reaches the body as it is. */
export const cache_mark = 'medley_cache_control';

/** Rewrites a prompt for the model of `@ai-sdk/openai`: our options under its name, files in forms that it sends. */
export function promptFor(prompt: LanguageModelV4Prompt): LanguageModelV4Prompt {
  return prompt.map((message) => ({ ...messageFor(message), ...renamed(message.providerOptions) }));
}

function messageFor(message: LanguageModelV4Message): LanguageModelV4Message {
  switch (message.role) {
    case 'system':
      return message;
    case 'user':
      return {
        ...message,
        content: message.content.map((part) => (part.type === 'file' ? fileFor(part) : partFor(part))),
      };
    case 'assistant': {
      const sealed = sealedItems(message.content);
      return {
        ...message,
        content: message.content.map((part) => {
          if (part.type === 'reasoning') return thoughtFor(part, sealed);
          return part.type === 'tool-result' ? resultFor(part) : partFor(part);
        }),
      };
    }
    case 'tool':
      return {
        ...message,
        content: message.content.map((part) => (part.type === 'tool-result' ? resultFor(part) : partFor(part))),
      };
  }
}

function partFor<T extends { providerOptions?: SharedV4ProviderOptions }>(part: T): T {
  return { ...part, ...renamed(part.providerOptions) };
}

/** Options of other providers name what is theirs: items of OpenAI's own store, say. They are left out. */
function renamed(options: SharedV4ProviderOptions | undefined): { providerOptions?: SharedV4ProviderOptions } {
  if (options === undefined) return {};
  const own = options['medley'];
  return { providerOptions: own === undefined ? {} : { openai: withCacheMark(own) } };
}

function withCacheMark({ cacheControl, ...others }: JSONObject): JSONObject {
  if (!isJsonObject(cacheControl)) return others;
  return { ...others, promptCacheBreakpoint: { [cache_mark]: cacheControl } };
}

/** The thoughts of one item may be several parts, of which one has the seal. */
function sealedItems(
  content: readonly { type: string; providerOptions?: SharedV4ProviderOptions }[],
): ReadonlySet<unknown> {
  const own = content.map(({ providerOptions }) => providerOptions?.['medley']);
  return new Set(
    own.filter((options) => options?.['reasoningEncryptedContent'] != null).map((options) => options?.['itemId']),
  );
}

function thoughtFor(part: LanguageModelV4ReasoningPart, sealed: ReadonlySet<unknown>): LanguageModelV4ReasoningPart {
  const own = part.providerOptions?.['medley'];
  if (own?.['itemId'] === undefined || sealed.has(own['itemId'])) return partFor(part);
  return { ...part, providerOptions: { openai: { ...own, reasoningEncryptedContent: unsealed } } };
}

/** Texts become files of text: the model below takes no other. */
function fileFor(part: LanguageModelV4FilePart): LanguageModelV4FilePart {
  const { data } = part;
  if (data.type === 'text') {
    const bytes = new TextEncoder().encode(data.text);
    const mediaType = part.mediaType.includes('/') && !part.mediaType.endsWith('/*') ? part.mediaType : 'text/plain';
    return partFor({ ...part, mediaType, data: { type: 'data', data: convertUint8ArrayToBase64(bytes) } });
  }
  if (data.type !== 'reference') return partFor(part);
  const { medley, ...others } = data.reference;
  return partFor({ ...part, data: { ...data, reference: medley === undefined ? others : { openai: medley } } });
}

function resultFor(part: LanguageModelV4ToolResultPart): LanguageModelV4ToolResultPart {
  const { output } = part;
  if (output.type !== 'content') return partFor({ ...part, output: partFor(output) });
  return partFor({ ...part, output: { ...output, value: output.value.map(partFor) } });
}
