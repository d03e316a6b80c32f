import type { Cost } from '../../../../src/dashboard/views/common.ts';

/** A file or a link in a chat, beside the words: it is sent with every call of the conversation. */
export type Attachment = AttachedFile | ImageLink;

/** An image elsewhere, which the model's provider loads. A stored call may have one. */
type ImageLink = { kind: 'link'; name: string; url: string; detail?: string };

export type AttachedFile = {
  /** The same for the same content within a conversation, once that was saved. */
  id?: string;
  kind: AttachmentKind;
  name: string;
  media_type: string;
  /** Base64 of its bytes. */
  data: string;
  size_bytes: number;
};

export type AttachmentKind = 'image' | 'document' | 'audio';

/** A turn of the conversation with one model. */
export type Turn =
  | { role: 'user'; text: string; files: Attachment[] }
  /** Results of the tools that were just called, the same for each of them. */
  | { role: 'tool'; text: string; ids: string[] }
  | ModelAnswer;

export type ModelAnswer = {
  role: 'assistant';
  text: string;
  thinking: string;
  tools: ToolCall[];
  state: 'streaming' | 'done' | 'stopped' | 'failed';
  finish: string | undefined;
  error: AnswerError | undefined;
  request_id: string | undefined;
  bill: Bill | undefined;
  vote?: Vote | undefined;
  voted_at?: number | undefined;
};

/** Which answers were good, of one model or of several side by side. */
export type Vote = 'up' | 'down';

/** A Failure in a form that can be stored. */
export type AnswerError = { message: string; status: number; request_id: string | undefined };

export type ToolCall = {
  /** Which of the answer's calls it is. */
  key: number;
  id: string;
  name: string;
  arguments: string;
};

export type Bill = { input_tokens: number; output_tokens: number; cost: Cost; total_ms: number };
