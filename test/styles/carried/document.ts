import { answers_of_completions, answers_of_messages, type AnswerRow } from './answers.ts';
import { completions_history } from './completions-history.ts';
import { completions_said } from './completions-said.ts';
import { completions_settings } from './completions-settings.ts';
import { answers_of_contents, failures_of_contents } from './contents-answers.ts';
import { completions_to_contents } from './completions-to-contents.ts';
import { messages_to_contents } from './messages-to-contents.ts';
import { messages_history } from './messages-history.ts';
import { messages_said } from './messages-said.ts';
import { messages_settings } from './messages-settings.ts';
import { answers_for_responses, from_responses } from './responses.ts';
import type { Row } from './row.ts';
import { answers_of_responses, completions_to_responses, messages_to_responses } from './to-responses.ts';

export const from_completions: readonly Row[] = [...completions_said, ...completions_history, ...completions_settings];
export const from_messages: readonly Row[] = [...messages_said, ...messages_history, ...messages_settings];

const head = `# Chat translation

All three chat endpoints reach every chat model. Where the upstream of a model speaks the style of the endpoint, the
request goes on as it came and the answer comes back as it came: only the model’s name, the limit of the output
and, in streams of chat completions, the wish for usage are changed. Blocks, signatures, cache controls
and explicit nulls survive, and so do members of blocks that we have never heard of; of the body itself those that the
SDKs of the style define, and betas that cost nothing but tokens. Two things are mended on the way: in messages
style, thinking blocks without a signature, or with a seal of Gemini’s in its place, are left out (they come from a
model of another style, and would have the whole conversation refused), and a thinking budget is kept below the limit of the output. Requests of the
responses style never leave anything behind: \`store\` is false, and reasoning that an upstream would have to have
stored is left out. What would cost more than its tokens pay, and what names things in the operator’s account upstream,
goes no further than here: see [chat-billing.md](chat-billing.md).

Names of end users and of prompt caches (\`user\`, \`safety_identifier\`, \`prompt_cache_key\`, \`metadata.user_id\`) are
replaced by names that belong to the account: at the upstream all accounts share one customer, and would share a cache,
a limit or a ban under one name. The same name of the same account stays the same.

Links that callers send (to pictures, videos, documents, servers of tools) are judged in every style, before anybody is
asked: http(s) only, no user names, no literal address that is private, local or reserved, also in its decimal, octal,
hexadecimal and mapped forms; the answer is a 400 \`link_not_allowed\` that names the place. What becomes of the
others is said by \`links\` of the provider in \`medley.yaml\`: \`pass\` gives them to the upstream, \`fetch\` has the service
fetch them through its guarded connector and send the files, \`refuse\` takes none. Without it a provider with
\`allow_private\`, which stands in your own network, is given files, and every other one the links. What \`net.allow\` and
\`MEDLEY_ALLOW_PRIVATE=1\` permit is fetched by the service alone: no upstream is given such an address.

Where it speaks another style, the request is translated. What becomes of each field is listed here; from the
responses style to messages, fields become what those of chat completions with the same meaning become. *Carried*
means with its whole meaning, *changed* with another form or less of it, *dropped* that the model is not told and
the caller will hardly notice, *refused* that the answer is a 400 which names the field in \`param\`.

Two things are carried between styles in neither direction. Thinking that one provider has sealed is told to no
other: a model gets its own back, as blocks or by way of \`reasoning_details\`, and what it was is left out where the
conversation moves on to an upstream of another style. And citations, with the web search of the provider: a wish
for it is refused or dropped as the tables say, its results in what was said before become text, and answers come
without their sources.

Each row is a test: the tables are made of the rows in \`test/styles/carried/\`. After a change there,
\`vitest run -u\` of \`test/styles/carried.unit.test.ts\` writes this page anew.

Options of a route that are mentioned here say what its model takes differently from others of its style.`;

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
    '## Requests of chat completions, for an upstream of the responses style',
    requestTable(completions_to_responses),
    '## Requests of messages style, for an upstream of the responses style',
    requestTable(messages_to_responses),
    '## Requests of chat completions, for an upstream of Gemini’s style',
    requestTable(completions_to_contents),
    '## Requests of messages style, for an upstream of Gemini’s style',
    requestTable(messages_to_contents),
    '## Answers of messages style, for a caller of chat completions',
    answerTable(answers_of_messages),
    '## Answers of chat completions, for a caller of messages style',
    answerTable(answers_of_completions),
    '## Answers of chat completions, for a caller of the responses style',
    answerTable(answers_for_responses),
    '## Answers of the responses style, for a caller of chat completions',
    answerTable(answers_of_responses),
    '## Answers of Gemini’s style',
    contentsTable(),
  ].join('\n\n')}\n`;
}

function requestTable(rows: readonly Row[]): string {
  const lines = rows.map(({ field, what, how }) => `| ${cell(field)} | ${what} | ${cell(how)} |`);
  return ['| Field | | How |', '|---|---|---|', ...lines].join('\n');
}

function answerTable(rows: readonly AnswerRow[]): string {
  const lines = rows.map(({ part, how }) => `| ${cell(part)} | ${cell(how)} |`);
  return ['| Part | How |', '|---|---|', ...lines].join('\n');
}

function contentsTable(): string {
  const lines = answers_of_contents.map(
    ({ part, how }) => `| ${cell(part)} | ${cell(how.completions)} | ${cell(how.messages)} |`,
  );
  const failures = failures_of_contents.map(({ part, how }) => `| ${cell(part)} | ${cell(how)} | the same |`);
  const head_lines = ['| Part | For chat completions | For messages style |', '|---|---|---|'];
  return [...head_lines, ...lines, ...failures].join('\n');
}

/** Names that would otherwise be read as emphasis. */
function cell(text: string): string {
  return text
    .split('`')
    .map((piece, index) => (index % 2 === 0 ? piece.replaceAll(/([_*|])/g, '\\$1') : piece))
    .join('`');
}
