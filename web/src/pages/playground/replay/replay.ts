import type { ChatContentView, ChatView } from '../../../../../src/dashboard/views/activity.ts';
import { settingsIn, type Settings } from '../conversation.ts';
import type { Source } from '../saved-conversation.ts';
import { addTurns, empty_thread, type Thread } from '../thread.ts';
import { readAnswer, readMessages, type ReadMessages } from './stored-messages.ts';
import { readSettings, type ReadSettings } from './stored-settings.ts';
import type { ModelAnswer } from '../turn.ts';

/** A stored call, ready to be changed and asked again. */
export type Replay = {
  source: Source;
  model: string;
  settings: Settings;
  /** The request. */
  request: Thread;
  /** The request with its answers: of several each is a version. */
  exchange: Thread;
};

/** Reads a stored call. What the playground cannot send again is in the notes of its source, a sentence each. */
export function replayOf(call: ChatView, content: ChatContentView): Replay {
  const messages = readMessages(content.messages, content.style === 'responses');
  const settings = readSettings(content.style, content.settings);
  const answers = content.answers.map((answer) => readAnswer(answer, messages));
  const request = addTurns(empty_thread, undefined, messages.turns);
  const nodes = answers.reduce(
    (thread, answer, index) => addTurns(thread, request.leaf, [index === 0 ? billed(answer, call) : answer]),
    request,
  ).nodes;
  return {
    source: { call: call.id, notes: notesOf(content, messages, settings) },
    model: content.model,
    settings: settingsIn({ style: settings.style, system: messages.system, fields: settings.fields }),
    request,
    exchange: { nodes, leaf: nodes[request.nodes.length]?.id ?? request.leaf },
  };
}

/** The first answer has what the record of the call says about all of them. */
function billed(answer: ModelAnswer, call: ChatView): ModelAnswer {
  const { id, status, error_type, finish, input_tokens, output_tokens, cost, total_ms } = call;
  const paid: ModelAnswer = {
    ...answer,
    request_id: id,
    finish: finish ?? undefined,
    bill: { input_tokens, output_tokens, cost, total_ms },
  };
  if (status < 400) return paid;
  const message = `The call failed: ${error_type ?? status}.`;
  return { ...paid, state: 'failed', error: { message, status, request_id: id } };
}

function notesOf(content: ChatContentView, messages: ReadMessages, settings: ReadSettings): string[] {
  const { is_cut, redacted, answers } = content;
  const kinds = Object.keys(redacted);
  const left_out = [...messages.left_out, ...settings.left_out];
  const notes: [boolean, string][] = [
    [kinds.length > 0, `Words in brackets stand for what was replaced before it was stored: ${kinds.join(', ')}.`],
    [is_cut && content.messages.length === 0, 'The request was too long to be stored: its messages are not here.'],
    [
      is_cut && content.messages.length > 0,
      'Something was too long to be stored whole: a note says where it was cut, and is sent in the place of the rest.',
    ],
    [
      messages.missing_files > 0,
      'Files are not stored: a note stands in the place of each. Attach them to a new message to send them.',
    ],
    [answers.length === 0, 'No answer of this call is stored.'],
    [messages.has_moved_system, 'System messages from between the others are in the system prompt now.'],
    [messages.has_thinking, 'The thinking of earlier answers is shown, and not sent again.'],
    [left_out.length > 0, `Left out, since the playground cannot send it: ${left_out.join(', ')}.`],
    [
      settings.labels.length > 0,
      `Left out, so that runs here do not count for somebody else: ${settings.labels.join(', ')}.`,
    ],
  ];
  return notes.flatMap(([is_so, note]) => (is_so ? [note] : []));
}
