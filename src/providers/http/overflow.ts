import type { Overflow } from '../provider.ts';

/** An error as the upstream reports it; missing parts are empty. */
export type UpstreamError = { message: string; type: string; code: string };

/** Codes and types that some have for it. */
const codes =
  /^(context_length_exceeded|context_window_exceeded|exceed_context_size_error|model_max_prompt_tokens_exceeded|string_above_max_context|model_context_window_exceeded)$/i;

/** Wordings of upstreams, each with the one that it was seen at. */
const wordings: readonly RegExp[] = [
  /\bprompt is too long\b/i, // Anthropic, Fireworks
  /exceeds? (?:the )?context limit/i, // Anthropic, of input and max_tokens together
  /maximum (?:allowed )?context (?:length|limit|window)/i, // OpenAI, Azure, vLLM, DeepSeek, OpenRouter, Mistral
  /exceeds? (?:the|this|its) (?:model'?s? )?context (?:window|length)/i, // OpenAI's responses, Ollama
  /input tokens exceed the configured limit/i, // OpenAI
  /longer than the (?:model'?s? context length|maximum model length)/i, // SGLang, vLLM
  /exceeds the available context size|context size (?:has been|is) exceeded/i, // llama.cpp
  /greater than the context length/i, // LM Studio
  /input token count.{0,60}exceeds the maximum/i, // Gemini
  /\binput is too long\b|too many input tokens|input tokens exceeded/i, // Bedrock
  /maximum prompt length is \d/i, // xAI
  /reduce the length of the messages/i, // Groq
  /exceeded model token limit/i, // Moonshot
  /context window exceeds limit/i, // MiniMax
  /prompt exceeds max(?:imum)? length/i, // Zhipu
  /range of input length should be/i, // Alibaba
  /total number of tokens in the prompt cannot exceed/i, // Cohere
  /`inputs` (?:tokens \+ `max_new_tokens` must be|must have less than \d)/i, // TGI, Together
  /current length is \d+ while limit is \d+/i, // Cerebras
  /prompt token count of \d+ exceeds the limit/i, // Copilot
];

const limits: readonly RegExp[] = [
  /tokens > (\d+)/i,
  /maximum (?:allowed )?(?:context|prompt|model) (?:length|limit|window)(?: is| of)? (\d+)/i,
  /with (\d+) maximum context/i,
  /tokens allowed \(?(\d+)/i,
  /context size \(?(\d+)/i,
  /context length \((\d+)/i,
  /(?:token|configured) limit(?: of|:)? (\d+)/i,
  /limit(?: is| of) (\d+)/i,
  /\d+ \+ \d+ > (\d+)/,
];

const requests: readonly RegExp[] = [
  /(\d+) tokens > \d/i,
  /token count (?:of )?\(?(\d+)/i,
  /(?:resulted in|requested(?: about)?|contains(?: at least)?|request has) (\d+)/i,
  /(?:request|input|prompt) \((?:length )?(\d+)/i,
  /current length is (\d+)/i,
];

/** Returns the numbers of an error that says that a request is longer than the model's context; undefined for any other. */
export function overflowOf({ code, type, message }: UpstreamError): Overflow | undefined {
  const is_overflow = codes.test(code) || codes.test(type) || wordings.some((wording) => wording.test(message));
  if (!is_overflow) return undefined;
  const limit_tokens = numberIn(message, limits);
  const request_tokens = numberIn(message, requests);
  const is_plausible = limit_tokens === undefined || request_tokens === undefined || request_tokens > limit_tokens;
  return {
    ...(limit_tokens !== undefined && { limit_tokens }),
    ...(request_tokens !== undefined && is_plausible && { request_tokens }),
  };
}

function numberIn(message: string, forms: readonly RegExp[]): number | undefined {
  const digits = forms.map((form) => form.exec(message)?.[1]).find((text) => text !== undefined);
  const number = Number(digits);
  return Number.isSafeInteger(number) && number > 0 ? number : undefined;
}
