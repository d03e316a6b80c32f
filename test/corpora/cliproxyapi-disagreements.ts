import type { Disagreement } from './disagreements.ts';

/** Points in which our translations differ from those of CLIProxyAPI. docs/chat-translation.md shows them. */
export const differences_from_cliproxyapi: readonly Disagreement[] = [
  {
    where: /^request .*: (generationConfig\.maxOutputTokens|max_tokens): \d+, not (nothing|\d+)$/,
    what: 'The limit of the output is the one that is held for',
    why: 'the proxy has limits of its own, or none',
  },
  {
    where: /^request .* → messages: user: nothing/,
    what: 'A request without a user’s name gets none',
    why: 'the proxy makes one up; names at upstreams belong to accounts',
  },
  {
    where: /^request .* → responses: (parallel_tool_calls|thinking\.(mode|effort)): nothing/,
    what: 'Neither reasoning nor parallel calls are asked for where the caller asked for neither',
    why: 'the model’s own default holds',
  },
  {
    where: /^request .* → responses: tools\.\d+\.strict: false, not nothing/,
    what: 'Tools are sent to the responses style with `strict: false`',
    why: 'there strict is the default, and would change the schema',
  },
  {
    where: /^request .*: tools\.\d+\.description: nothing, not ""/,
    what: 'A tool without a description has none',
    why: 'an empty text says nothing',
  },
  {
    where: /^request .* → gemini: model: nothing/,
    what: 'The body for Gemini has no model',
    why: 'it stands in the path',
  },
  {
    where: /^request .* → gemini: systemInstruction\.role: nothing/,
    what: 'Gemini’s system prompt has no role',
    why: 'it does not need one',
  },
  {
    where: /^request .* → gemini: contents\.\d+\.parts\.\d+\.thoughtSignature: "skip_thought_signature_validator"/,
    what: 'The first call of each turn that came from another model has Google’s word for a missing signature',
    why: 'a signature that is not marked as Gemini’s own is not sent to it',
  },
  {
    where:
      /^request (?=.*(thought|thinking|reasoning|signature|sentinel|summary wins|two turn|tool result turns|adjacent|assistant content)).*: (turns|contents)\./,
    what: 'Thinking goes back only to upstreams of the style that it came from',
    why: 'signatures are sealed by one provider; plain thinking would have to be paid for again as text',
  },
  {
    where: /^request .*: turns\.\d+\.parts\.\d+\.id: "call_\w+_[0-9a-f]{8}", not/,
    what: 'Ids of calls that the upstream would not take get a digest',
    why: 'two ids could become the same otherwise',
  },
  {
    where: /^request .*: turns\.\d+\.parts\.\d+\.id: "call_\d+_\d+", not/,
    what: 'Calls of Gemini’s callers are counted',
    why: 'its older clients have no ids; the proxy makes longer ones',
  },
  {
    where: /^request .*: gemini → .*: turns\.\d+\.parts\.\d+\.parts\.\d+\.text: "\{\\"result/,
    what: 'Results of Gemini’s callers go on as the object that they are',
    why: 'the proxy takes the member `result` out of it',
  },
  {
    where: /^request .* → gemini: contents\.\d+\.parts\.\d+\.functionResponse\.response\./,
    what: 'Results of tools go to Gemini as `output`, and as text',
    why: 'Google’s own SDKs name it so; the proxy says `result`, and reads JSON in it',
  },
  {
    where: /^request .*service tier.*: refused, service_tier:/,
    what: 'A service tier with prices of its own is refused',
    why: 'the call would cost more than is held for',
  },
  {
    where: /^request drops temperature: .*: (temperature|top_p):/,
    what: 'Of a temperature and `top_p`, the temperature is sent',
    why: 'models refuse both; the proxy sends the other',
  },
  {
    where:
      /^request (converts message system|message system|system|keeps system).*: (turns|contents|systemInstruction)\./,
    what: 'Rules that come later stay a system turn, or the end of the system prompt; an empty turn has a word',
    why: 'the proxy makes users’ messages of them, and of the system prompt beside one',
  },
  {
    where: /^request deduplicates tools across additional tools: .*: tools\./,
    what: 'Of two tools of one name, one of them in `additional_tools`, the later one counts',
    why: 'OpenAI’s reference (2026-11) says that an item’s tools are available from there on, so its definition is the newer one',
  },
  {
    where:
      /^request .*(custom|namespace|additional|apply patch|deduplicates|direct tool).*: (tools\.\d+\.|contents\.\d+\.parts\.\d+\.function(Call|Response)\.name|tool_choice|toolConfig)/,
    what: 'Custom tools become functions that say what their input is',
    why: 'the proxy drops or shortens some; namespaces keep their descriptions',
  },
  {
    where: /^request .*(stringified|non string json).*: turns\.\d+\.parts\./,
    what: 'The result of a tool that is a text stays a text, though it looks like JSON',
    why: 'the tool said a text',
  },
  {
    where: /^request .*tool output images: .*: turns\.\d+\.parts\.|^request tool result .*: turns\./,
    what: 'Images in results of tools stand in the user’s next message, and the result says so',
    why: 'chat completions have no place for them; results come first',
  },
  {
    where: /^request .*(union).*: tools\./,
    what: 'A union at the top of a tool’s schema is kept in its description',
    why: 'the model should know which members go together',
  },
  {
    where:
      /^request .*(tool name|converted name).*: (tools\.\d+\.name|tool_choice\.name|turns\.\d+\.parts\.\d+\.name):/,
    what: 'Long names of tools are shortened with a digest',
    why: 'two names could become the same otherwise',
  },
  {
    where: /^request .*(schema required).*: tools\./,
    what: 'Schemas go to Gemini as they are, with the titles and names that are required',
    why: '`parametersJsonSchema` takes them',
  },
  {
    where:
      /^request .* → gemini: contents\.\d+\.parts\.\d+\.(inlineData|inline_data|text|functionResponse|functionCall)\b/,
    what: 'Files, names of files, ids and images in results go to Gemini in the places that its reference names',
    why: 'the proxy leaves some out, and writes some with underscores',
  },
  {
    where: /^request strips trailing assistant prefill: .*: contents\./,
    what: 'A last turn of the assistant’s goes to Gemini',
    why: 'Gemini goes on from it',
  },
  {
    where: /^request .*: turns\.\d+\.parts\.\d+\.detail:/,
    what: 'The detail of an image goes on as it is',
    why: 'the proxy turns it into one of its own',
  },
  {
    where: /^request format json (schema|object): .*: generationConfig\.temperature: nothing/,
    what: 'Members of Gemini’s style in a request of chat completions are not read',
    why: 'the style does not have them',
  },
  {
    where:
      /^request .*: responses → messages: turns\.0\.(role: "user"|parts\.0\.(type: "text"|text: "Hi")), not nothing$/,
    what: 'An input that is a text is the user’s turn',
    why: 'the proxy leaves it out',
  },
  {
    where: /^request groups non contiguous parallel tool outputs: .*: contents\.4\.role: nothing/,
    what: 'A message between the results of a turn stands behind them, in the same turn',
    why: 'the proxy writes two turns of the user’s in a row',
  },
  {
    where: /^request .*: refused, /,
    what: 'A request that breaks the rules of its style is refused, and the answer names the field',
    why: 'the proxy mends it by a guess, or drops what it does not know',
  },
  {
    where: /^(answer|stream) .*: (\d\.)?usage\.output_tokens: \d+, not nothing$/,
    what: 'An answer without usage has a counted one',
    why: 'the caller sees what is charged',
  },
  {
    where: /^(answer|stream) .*: (\d\.)?usage\.(input_tokens|cache_write_tokens): \d+, not (\d+|nothing)$/,
    what: 'Input that was written to a cache is counted apart',
    why: 'it has a price of its own',
  },
  {
    where: /^(answer|stream) .*: (\d\.)?usage\.(reasoning|output)_tokens: (nothing|\d+), not \d+$/,
    what: 'Usage is what the upstream reports',
    why: 'the proxy counts thinking itself where nothing is reported',
  },
  {
    where: /^answer .*: 0\.usage\.tool_calls\.web_search: 1/,
    what: 'Searches that the upstream ran are in the usage',
    why: 'they are paid for',
  },
  {
    where: /^(answer|stream) .*: (\d\.parts\.\d+\.)?signature: "(responses:|signature:)/,
    what: 'Signatures are marked with the style that they come from',
    why: 'so they never go to another provider',
  },
  {
    where: /^(answer|stream) .*: (\d\.parts\.\d+\.)?signature: (""|nothing), not/,
    what: 'A signature counts where the style has it: at the end of its own thought',
    why: 'the proxy also takes it from other places',
  },
  {
    where: /^(answer|stream) .*: ((\d\.parts\.\d+\.)id|calls\.\d+): "(call|toolu)_\w+.*, not "/,
    what: 'The id of a call is the upstream’s where it has one, else it is made from the request’s; names and arguments are what the model wrote',
    why: 'the proxy makes random ids, shortens long ones and repairs arguments',
  },
  {
    where:
      /^stream .*: (error: "The stream was cut off\."|(end|finish|text|thinking|calls\.\d+|usage\.\w+): (nothing|""), not )/,
    what: 'A stream that breaks off before its end is an error; what would only be known at the end is not in it',
    why: 'the caller must not take it for a whole answer',
  },
  {
    where:
      /^stream .*: (finish: .*, not nothing|end: true, not nothing|error: nothing, not "The stream was cut off\.")$/,
    what: 'A whole stream has its end',
    why: 'the proxy sends some without',
  },
  {
    where: /^(answer|stream) .*stop sequence mapping: .*finish/,
    what: 'The responses style does not say which stop sequence ended an answer',
    why: 'its reference has no such member',
  },
  {
    where: /^answer (preserves thought signature|part with thought signature.*): messages → gemini: 0\.parts\./,
    what: 'Parts of Gemini’s answers stay apart; a text that is signed and not marked as a thought is a text',
    why: 'so says the upstream',
  },
  {
    where: /^(answer|stream) restores additional namespace .*: (0\.parts\.0\.(name|arguments)|calls\.0): /,
    what: 'Only names that this service gave to tools become the caller’s again',
    why: 'the proxy puts the namespace before the name, this service does not',
  },
  {
    where: /^answer multi choice parts overlay.*: gemini → completions: [01]\./,
    what: 'Several choices are several candidates',
    why: 'the proxy writes them over each other',
  },
  {
    where: /^stream .*: thinking: "[^"]+", not ".*"$/,
    what: 'All thinking is in the stream, thoughts in a row with an empty line between them',
    why: 'the proxy leaves out what comes before a signed text',
  },
  {
    where: /^stream .*: finish: "stop", not "tool_calls"$/,
    what: 'A call without a name or without an id is none',
    why: 'nobody could run it; the proxy makes up a name',
  },
];
