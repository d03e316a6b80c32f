import { Button, FileButton, Group, Text, Textarea } from '@mantine/core';
import { PaperClipIcon } from '@heroicons/react/24/outline';
import { PaperAirplaneIcon, StopIcon } from '@heroicons/react/24/solid';
import { useState, type ReactNode } from 'react';
import { AttachmentView } from './AttachmentView.tsx';
import { acceptOf, attach, attached_max_bytes, sizeOf } from './attachments.ts';
import { record_seconds_max, RecordButton, RecorderPlace, useRecorder } from './record/RecordPart.tsx';
import { longestSeconds } from './record/wav.ts';
import type { Attachment, AttachmentKind } from './turn.ts';

/** The message being written. */
export type Draft = { text: string; files: Attachment[] };

export const blank_draft: Draft = { text: '', files: [] };

type Props = {
  draft: Draft;
  setDraft: (change: (before: Draft) => Draft) => void;
  send: () => void;
  stop: () => void;
  clear: () => void;
  is_streaming: boolean;
  has_turns: boolean;
  /** The next thing that is said is what a tool has found. */
  calls_tools: boolean;
  /** Kinds of files that may go along. */
  taken: AttachmentKind[];
  /** Bytes of files that the conversation has already. */
  attached_bytes: number;
  disabled: boolean;
  /** Its hold, or the reason why it cannot be sent. */
  note: ReactNode;
};

/** The box for a message to the models, with its files. */
export function Composer(props: Props) {
  const { draft, setDraft, send, stop, clear, is_streaming, has_turns, calls_tools, disabled, note } = props;
  const { text, files } = draft;
  const attaching = useAttaching(props);
  const recorder = useRecorder();
  const can_send = !disabled && !is_streaming && !attaching.is_reading && (text.trim() !== '' || files.length > 0);
  const go = () => can_send && send();
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        go();
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        attaching.add([...event.dataTransfer.files]);
      }}
    >
      <Textarea
        label={calls_tools ? 'Result of the tool' : 'Message'}
        description="Ctrl or ⌘ and Enter sends it."
        autosize
        minRows={3}
        maxRows={12}
        value={text}
        onChange={({ currentTarget: { value } }) => setDraft((before) => ({ ...before, text: value }))}
        onPaste={({ clipboardData }) => attaching.add([...clipboardData.files])}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          if (!event.repeat) go();
        }}
      />
      <Attached files={files} setDraft={setDraft} problem={attaching.problem} />
      {attaching.takes_audio && (
        <RecorderPlace
          recorder={recorder}
          seconds_max={Math.min(record_seconds_max, longestSeconds(attaching.left_bytes))}
          take_label="Attach"
          take={(file) => attaching.add([file])}
        />
      )}
      <Group mt="sm">
        {is_streaming ? (
          <Button color="red" variant="light" onClick={stop} leftSection={<StopIcon width={18} aria-hidden />}>
            Stop
          </Button>
        ) : (
          <Button type="submit" disabled={!can_send} leftSection={<PaperAirplaneIcon width={18} aria-hidden />}>
            Send
          </Button>
        )}
        {attaching.is_open && <AttachButton {...props} add={attaching.add} />}
        {attaching.takes_audio && <RecordButton recorder={recorder} disabled={is_streaming || recorder.is_open} />}
        {has_turns && !is_streaming && (
          <Button variant="subtle" color="gray" onClick={clear}>
            Start over
          </Button>
        )}
        <Text size="sm" c="dimmed" component="div" role="status" flex={1} miw={160}>
          {note}
        </Text>
      </Group>
    </form>
  );
}

function useAttaching({ draft, setDraft, taken, attached_bytes, calls_tools, disabled }: Props) {
  const [problem, setProblem] = useState<string>();
  const [reads, setReads] = useState(0); // a message that is sent meanwhile would go without its files
  const is_open = taken.length > 0 && !calls_tools && !disabled;
  const left_bytes = attached_max_bytes - sizeOf(draft.files) - attached_bytes;
  const add = (files: File[]) => {
    if (!is_open || files.length === 0) return;
    setProblem(undefined);
    if (files.reduce((sum, { size }) => sum + size, 0) > left_bytes) {
      setProblem(`The files of one conversation may have ${attached_max_bytes / 1_000_000} MB in total.`);
      return;
    }
    setReads((before) => before + 1);
    Promise.all(files.map((file) => attach(file, taken)))
      .then(
        (read) => setDraft((before) => ({ ...before, files: [...before.files, ...read] })),
        (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)),
      )
      .finally(() => setReads((before) => before - 1));
  };
  return { is_open, is_reading: reads > 0, takes_audio: is_open && taken.includes('audio'), left_bytes, problem, add };
}

const words: Record<AttachmentKind, string> = { image: 'images', document: 'PDFs and texts', audio: 'audio' };

function AttachButton({
  taken,
  is_streaming,
  add,
}: Pick<Props, 'taken' | 'is_streaming'> & { add: (files: File[]) => void }) {
  return (
    <FileButton onChange={add} accept={acceptOf(taken)} multiple disabled={is_streaming}>
      {(button) => (
        <Button
          {...button}
          variant="light"
          leftSection={<PaperClipIcon width={18} aria-hidden />}
          title={`The model takes ${taken.map((kind) => words[kind]).join(', ')}.`}
        >
          Attach
        </Button>
      )}
    </FileButton>
  );
}

function Attached({
  files,
  setDraft,
  problem,
}: Pick<Draft, 'files'> & Pick<Props, 'setDraft'> & { problem: string | undefined }) {
  const remove = (index: number) =>
    setDraft((before) => ({ ...before, files: before.files.filter((_, at) => at !== index) }));
  return (
    <>
      {files.length > 0 && (
        <Group gap="md" mt="xs" role="group" aria-label="Attached files">
          {files.map((file, index) => (
            <AttachmentView key={index} file={file} remove={() => remove(index)} />
          ))}
        </Group>
      )}
      {problem !== undefined && (
        <Text size="sm" c="var(--mantine-color-error)" role="alert" mt={4}>
          {problem}
        </Text>
      )}
    </>
  );
}
