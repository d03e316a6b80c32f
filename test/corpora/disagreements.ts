/** A point in which our translation comes to something else than another gateway's. docs/chat-translation.md shows it. */
export type Disagreement = {
  /** Fits `KIND NAME: FROM → TO: PATH: OURS, not THEIRS`. */
  where: RegExp;
  what: string;
  why: string;
};

export const disagreements: readonly Disagreement[] = [
  {
    where: /^request .*: (generationConfig\.maxOutputTokens|max_tokens): \d+, not nothing$/,
    what: 'A limit of the output is sent where the caller set none',
    why: 'the hold of the call covers that much and no more',
  },
  {
    where: /^request full: .*: refused, functions:/,
    what: '`functions` beside `tools` is refused',
    why: 'one of the two lists would be lost',
  },
  {
    where: /^request .* → gemini: tools\.\d+\.functionDeclarations\.\d+\.parameters/,
    what: 'Parameters of tools go to Gemini as `parametersJsonSchema`, not as `parameters`',
    why: '`parameters` knows a part of JSON Schema only',
  },
  {
    where: /^request structured-output: .* → gemini: generationConfig\.response(Json)?Schema\./,
    what: 'Schemas of answers go to Gemini as `responseJsonSchema`, not as `responseSchema`',
    why: '`responseSchema` knows a part of JSON Schema only, and no `$ref`',
  },
  {
    where: /^request .* → gemini: generationConfig\.(frequency|presence)Penalty: nothing/,
    what: 'Penalties do not go to Gemini',
    why: 'several of its models refuse requests that have them',
  },
  {
    where: /^request .* → gemini: contents\.\d+\.parts\.\d+\.(functionCall|functionResponse)\.id: "/,
    what: 'Ids of tool calls go to Gemini',
    why: 'two results for one name could be mixed up without them',
  },
  {
    where: /^request .* → gemini: contents\.\d+\.parts\.\d+\.thoughtSignature: "skip_thought_signature_validator"/,
    what: 'The first call of each turn that came from another model has Google’s word for a missing signature',
    why: 'Gemini 3 refuses a call without any',
  },
  {
    where: /^request .* → gemini: contents\.\d+\.parts\.\d+\.functionResponse\.response\.(output|content):/,
    what: 'Results of tools go to Gemini as `output`, not as `content`',
    why: 'Google’s own SDKs name it so',
  },
  {
    where: /^request image-file: .*: refused,/,
    what: 'An image that is neither a link nor a data URL is refused',
    why: 'names of files belong to the operator’s account upstream',
  },
  {
    where:
      /^request reasoning(_max)?: .*: (thinking\.(effort|budget_tokens)|generationConfig\.thinkingConfig\.thinking(Level|Budget)):/,
    what: 'An effort goes on as an effort, not as a number of tokens',
    why: 'today’s models of both styles take efforts; a route can ask for numbers (`thinking: budget`)',
  },
  {
    where: /^request cache_control: messages → completions: turns\.[01]\.parts\./,
    what: 'Texts of one turn stand in one `content`, with empty lines between blocks of the system prompt',
    why: 'many servers take a string only',
  },
  {
    where: /^request cache_control: messages → completions: turns\.4\.parts\./,
    what: 'An image in the result of a tool stands in the user’s next message',
    why: 'results of tools have no place for images there, and the image would be lost',
  },
  {
    where: /^request gpt_adaptive_thinking_with_tools: .*: thinking\.mode: nothing/,
    what: 'Adaptive thinking beside tools is not turned into `reasoning_effort: none`',
    why: 'only some models need that; their routes go through the responses style (`responses: tools`)',
  },
  {
    where: /^request reasoning: messages → completions: refused, output_format:/,
    what: '`output_format` that is no object is refused',
    why: 'the style has no such value',
  },
  {
    where: /^request responses_agent_subset: .*: refused, .*\.source:/,
    what: 'A file that lies at another provider is refused',
    why: 'the upstream does not have it',
  },
  {
    where: /^request server_tools: .*: refused, tools\[0\]\.type:/,
    what: 'A tool that the model’s own provider runs is refused where it is not left out',
    why: 'the upstream does not have it',
  },
  {
    where: /^request structured-output: messages → completions: (format|thinking)\./,
    what: 'A schema is strict, and an effort beside it is kept',
    why: 'the messages style always keeps to its schema; the effort was asked for',
  },
  {
    where: /^request tools: messages → responses: tools\.0\.strict: false/,
    what: 'Tools are sent to the responses style with `strict: false`',
    why: 'there strict is the default, and would change the schema',
  },
  {
    where:
      /^(answer|stream) .*: messages → completions: .*usage\.(input_tokens|cached_input_tokens|cache_write_tokens):/,
    what: 'Input that was cached is a part of `prompt_tokens`',
    why: 'in chat completions it is; the other gateway leaves it out',
  },
  {
    where: /^(answer|stream) .*: messages → completions: .*signature: "/,
    what: 'Signatures of thinking reach callers of chat completions, in `reasoning_details`',
    why: 'the model wants its own thinking back',
  },
  {
    where: /^(answer|stream) .*: usage\.reasoning_tokens|^answer .*: \d\.usage\.(reasoning|output)_tokens:/,
    what: 'Tokens of thinking are counted as output, and told',
    why: 'they are paid for; an upstream that leaves them out of the output has them in its total',
  },
  {
    where: /^answer (gemini_|truncated_).* → responses: 0\.finish\.reason: "length"/,
    what: 'An answer that was cut at the limit is `incomplete`',
    why: 'the caller cannot see it otherwise',
  },
  {
    where: /^answer (openrouter_)?reasoning: .*: 0\.parts\./,
    what: 'Thinking goes on as thinking',
    why: 'the other gateway drops it',
  },
  {
    where: /^answer truncated_tool_call: .* → messages: 0\.parts\.0\.arguments:/,
    what: 'Arguments that are no JSON object are `{"_raw": "…"}`',
    why: '`input` is an object in messages style',
  },
  {
    where: /^answer blocked: .*: refused,/,
    what: 'A prompt that Gemini blocks is a 400 `content_filter`',
    why: 'nothing was generated, and nothing is charged',
  },
  {
    where: /^stream stream_tool_empty_content: .*: calls\.0: "toolu_/,
    what: 'The id of a tool call is the upstream’s',
    why: 'the other gateway makes one of its own',
  },
];
