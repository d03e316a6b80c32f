import { differences } from '../../sdk/strict/differences.ts';
import { differences_from_cliproxyapi } from '../../corpora/cliproxyapi-disagreements.ts';
import { requests_unlike_litellm, streams_unlike_litellm } from '../../corpora/litellm-differences.ts';
import { disagreements, type Disagreement } from '../../corpora/disagreements.ts';
import { answers_of_completions, answers_of_messages, type AnswerRow } from './answers.ts';
import { completions_history } from './completions-history.ts';
import { completions_content } from './completions-content.ts';
import { completions_settings } from './completions-settings.ts';
import { answers_for_gemini, from_gemini } from './from-gemini.ts';
import { answers_of_contents, failures_of_contents, type ContentsAnswerRow } from './gemini-answers.ts';
import { answers_of_converse, failures_of_converse } from './converse-answers.ts';
import { completions_to_gemini } from './completions-to-gemini.ts';
import { messages_to_gemini } from './messages-to-gemini.ts';
import { messages_history } from './messages-history.ts';
import { messages_content } from './messages-content.ts';
import { messages_settings } from './messages-settings.ts';
import { answers_for_responses, from_responses } from './responses.ts';
import type { Row } from './row.ts';
import { completions_to_converse, messages_to_converse } from './to-converse.ts';
import { answers_of_responses, completions_to_responses, messages_to_responses } from './to-responses.ts';

export const from_completions: readonly Row[] = [
  ...completions_content,
  ...completions_history,
  ...completions_settings,
];
export const from_messages: readonly Row[] = [...messages_content, ...messages_history, ...messages_settings];

const head = `# Chat translation

All chat endpoints reach every chat model. Where the upstream has the style of the endpoint, the request and the answer
go through unchanged, with few exceptions:

- The model’s name, the answer’s id, the limit of the output and, in streams of chat completions, the request for usage are changed.
- Blocks, signatures, cache controls and explicit nulls go through, and so do unknown members of blocks. Of the body itself, the
  members that the SDKs of the style define go through, and betas that cost nothing but tokens.
- In messages style, thinking blocks without a signature, or with a thought signature of Gemini in its place, are left out. They come
  from a model of another style, and the upstream would refuse the whole conversation.
- In messages style, a thinking budget is lowered below the limit of the output.
- In Gemini’s style, thoughts that a model of another style signed are left out, and a call of another model gets the word for a missing
  signature. Links become files. Members may be written with underscores.
- Requests of the responses style store nothing: \`store\` is false, and reasoning that the upstream would have to have stored is left out.
- Fields that cost more than their tokens, or that name things in the operator’s account upstream, are not sent:
  see [chat-billing.md](chat-billing.md).

Names of end users and of prompt caches (\`user\`, \`safety_identifier\`, \`prompt_cache_key\`, \`metadata.user_id\`) are replaced by
names that belong to the account. At the upstream all accounts are one customer. Under one name they would share a cache, a limit or a ban.
The same name of the same account stays the same.

Links in a request (to images, videos, documents, servers of tools) are checked in every style, before any upstream is called: http(s) only, no
user names, no literal address that is private, local or reserved, also in its decimal, octal, hexadecimal and mapped forms. The answer
to a wrong link is a 400 \`link_not_allowed\` that names the place. The setting \`links\` of the provider in \`medley.yaml\` decides about the
others: \`pass\` sends them to the upstream, \`fetch\` makes the service fetch them through its guarded connector and send the files, \`refuse\`
refuses all. By default a provider with \`allow_private\`, in your own network, gets files, and every other provider gets the links. The
addresses that \`net.allow\` and \`MEDLEY_ALLOW_PRIVATE=1\` permit are fetched by the service alone: no upstream gets such an address.

Where the upstream has another style, the request is translated. The tables list every field. From the responses style and Gemini’s to the
others, a field becomes what the field of chat completions with the same meaning becomes. The words of the second column:

- *carried*: with its whole meaning;
- *changed*: in another form, or with less meaning;
- *dropped*: the model does not get it, and the caller will hardly notice;
- *refused*: the answer is a 400 that names the field in \`param\`.

Two things are never carried between styles:

- Sealed thinking of one provider goes to no other provider. A model gets its own thinking back, as blocks or as \`reasoning_details\`. It is
  left out where the conversation moves to an upstream of another style.
- Citations, with the web search of the provider. A request for it is refused or dropped, as the tables say. Earlier results become text, and
  answers come without their sources.

Each row is a test: the tables are made from the rows in \`test/styles/carried/\`. After a change there,
\`vitest run -u\` of \`test/styles/carried.unit.test.ts\` writes this page again.

The options of a route in these tables describe how its model differs from others of its style.`;

const converse_head = `Only upstreams speak this style. Fields beside those of Converse have a name of each vendor’s own: the family of a model is known by its
id, or by the route’s \`model_family\` (claude, nova, gpt, other), which an inference profile of one’s own needs.`;

const others = `\`test/corpora/\` has requests, answers and streams with what another gateway makes of them. Each is compared with ours by
its meaning. They differ in these points, and in no other:`;

const others_for_agents = `The same holds for what a proxy for coding agents makes of the cases of its own tests:`;

const others_in_facts = `And for streams of which LiteLLM’s tests say what they must become, and requests of messages style as it translates them:`;

const types = `\`test/sdk/strict/\` holds every kind of answer, event and error, also of images, files and lists, against the types of
the official SDKs of OpenAI, Anthropic and Google: no member is missing, none is unknown. These differences are meant:`;

/** docs/chat-translation.md as the rows of the tests have it. */
export function translationDocument(): string {
  return `${[
    head,
    '## Requests of chat completions, for an upstream of messages style',
    requestTable(from_completions),
    '## Requests of messages style, for an upstream of chat completions',
    requestTable(from_messages),
    '## Requests of the responses style, for an upstream of chat completions',
    requestTable(from_responses),
    '## Requests of Gemini’s style, for an upstream of chat completions',
    requestTable(from_gemini),
    '## Requests of chat completions, for an upstream of the responses style',
    requestTable(completions_to_responses),
    '## Requests of messages style, for an upstream of the responses style',
    requestTable(messages_to_responses),
    '## Requests of chat completions, for an upstream of Gemini’s style',
    requestTable(completions_to_gemini),
    '## Requests of messages style, for an upstream of Gemini’s style',
    requestTable(messages_to_gemini),
    '## Requests of chat completions, for an upstream of Bedrock’s Converse',
    converse_head,
    requestTable(completions_to_converse),
    '## Requests of messages style, for an upstream of Bedrock’s Converse',
    requestTable(messages_to_converse),
    '## Answers of messages style, for a caller of chat completions',
    answerTable(answers_of_messages),
    '## Answers of chat completions, for a caller of messages style',
    answerTable(answers_of_completions),
    '## Answers of chat completions, for a caller of the responses style',
    answerTable(answers_for_responses),
    '## Answers of the responses style, for a caller of chat completions',
    answerTable(answers_of_responses),
    '## Answers of messages style, for a caller of Gemini’s style',
    answerTable(answers_for_gemini),
    '## Answers of Gemini’s style',
    contentsTable(answers_of_contents, failures_of_contents),
    '## Answers of Bedrock’s Converse',
    contentsTable(answers_of_converse, failures_of_converse),
    '## Where another gateway does otherwise',
    others,
    disagreementTable(disagreements),
    others_for_agents,
    disagreementTable(differences_from_cliproxyapi),
    others_in_facts,
    disagreementTable([...streams_unlike_litellm, ...requests_unlike_litellm]),
    '## Where answers differ from the vendors’ types',
    types,
    differenceTable(),
  ].join('\n\n')}\n`;
}

function differenceTable(): string {
  const rows = Map.groupBy(differences, ({ why, ...rest }) => {
    const what =
      'absent' in rest ? 'left out' : 'value' in rest ? 'may be null' : 'put' in rest ? 'other values' : 'there';
    return `${what} | ${cell(why)} |`;
  });
  const lines = [...rows].map(([row, all]) => {
    const members = [...new Set(all.map(({ member }) => `\`${member}\``))].join(', ');
    return `| ${[...new Set(all.map(({ where }) => cell(where)))].join('; ')} | ${members} | ${row}`;
  });
  return ['| Where | Member | | Why |', '|---|---|---|---|', ...lines].join('\n');
}

function requestTable(rows: readonly Row[]): string {
  const lines = rows.map(({ field, what, how }) => `| ${cell(field)} | ${what} | ${cell(how)} |`);
  return ['| Field | | How |', '|---|---|---|', ...lines].join('\n');
}

function answerTable(rows: readonly AnswerRow[]): string {
  const lines = rows.map(({ part, how }) => `| ${cell(part)} | ${cell(how)} |`);
  return ['| Part | How |', '|---|---|', ...lines].join('\n');
}

function contentsTable(answers: readonly ContentsAnswerRow[], none: readonly { part: string; how: string }[]): string {
  const lines = answers.map(({ part, how }) => `| ${cell(part)} | ${cell(how.completions)} | ${cell(how.messages)} |`);
  const failures = none.map(({ part, how }) => `| ${cell(part)} | ${cell(how)} | the same |`);
  const head_lines = ['| Part | For chat completions | For messages style |', '|---|---|---|'];
  return [...head_lines, ...lines, ...failures].join('\n');
}

function disagreementTable(reasons: readonly Pick<Disagreement, 'what' | 'why'>[]): string {
  const lines = reasons.map(({ what, why }) => `| ${cell(what)} | ${cell(why)} |`);
  return ['| Here | Why |', '|---|---|', ...lines].join('\n');
}

/** Names that would otherwise be read as emphasis. */
function cell(text: string): string {
  return text
    .split('`')
    .map((piece, index) => (index % 2 === 0 ? piece.replaceAll(/([_*|])/g, '\\$1') : piece))
    .join('`');
}
