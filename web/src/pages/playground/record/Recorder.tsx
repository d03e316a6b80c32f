import { Button, Group, Loader, Paper, Progress, Stack, Text } from '@mantine/core';
import { CheckIcon, StopIcon } from '@heroicons/react/24/solid';
import { useEffect, useState, type ReactNode } from 'react';
import { sizeText } from '../../../ui/Media.tsx';
import { clockText } from './clock.ts';
import type { Capture, RecordProblem } from './microphone.ts';
import { useRecording, type RecordingState } from './useRecording.ts';

export type RecorderProps = {
  /** The longest recording. */
  seconds_max: number;
  /** The word for taking it: `Attach`, `Use`. */
  take_label: string;
  take: (file: File) => void;
  close: () => void;
};

const problem_texts: Record<RecordProblem, string> = {
  insecure:
    'Browsers record only on pages with https, or on the machine itself (localhost). Choose an audio file instead.',
  unsupported: 'This browser cannot record here. Choose an audio file instead.',
  refused:
    'The browser does not let this page use the microphone. Allow it in the browser’s address bar and try again, or choose an audio file instead.',
  no_device: 'There is no microphone. Connect one and try again, or choose an audio file instead.',
  busy: 'Another program uses the microphone. Close it and try again, or choose an audio file instead.',
  empty: 'Nothing was recorded. Try again, or choose an audio file instead.',
  unreadable: 'The browser cannot read its own recording. Choose an audio file instead.',
  no_room: 'There is no room left for a recording in this conversation. Remove a file or start over.',
};

/** Those that do not change by trying again. */
const lasting: readonly RecordProblem[] = ['insecure', 'unsupported', 'no_room'];

/** Records from the microphone, lets the person listen, and hands on a WAV file. */
export function Recorder({ seconds_max: longest, take_label, take, close }: RecorderProps) {
  const { state, again, seconds_max } = useRecording(longest, 'Recording.wav');
  return (
    <Paper withBorder p="sm" mt="xs" radius="md" role="group" aria-label="Recording">
      <Shown {...{ state, seconds_max, take_label, take, close, again }} />
    </Paper>
  );
}

type ShownProps = RecorderProps & { state: RecordingState; again: () => void };

function Shown({ state, seconds_max, take_label, take, close, again }: ShownProps) {
  switch (state.is) {
    case 'asking':
      return (
        <Line
          status={
            <>
              <Loader size="xs" aria-hidden /> Allow the microphone where the browser asks.
            </>
          }
        >
          <Discard close={close} />
        </Line>
      );
    case 'recording':
      return <InProgress capture={state.capture} seconds_max={seconds_max} close={close} />;
    case 'converting':
      return (
        <Line
          status={
            <>
              <Loader size="xs" aria-hidden /> Converting
            </>
          }
        />
      );
    case 'recorded':
      return (
        <Stack gap="xs">
          <audio src={state.url} controls aria-label="Recording" style={{ width: '100%' }} />
          <Line
            status={
              <span className="figure">
                {clockText(state.seconds)}, {sizeText(state.file.size)}
              </span>
            }
          >
            <Button
              size="xs"
              autoFocus
              onClick={() => take(state.file)}
              leftSection={<CheckIcon width={16} aria-hidden />}
            >
              {take_label}
            </Button>
            <Button size="xs" variant="default" onClick={again}>
              Record again
            </Button>
            <Discard close={close} />
          </Line>
        </Stack>
      );
    case 'failed':
      return <Failure problem={state.problem} close={close} again={again} />;
  }
}

type FailureProps = { problem: RecordProblem; close: () => void; again: () => void };

function Failure({ problem, close, again }: FailureProps) {
  return (
    <Stack gap="xs">
      <Text size="sm" role="alert" c="var(--mantine-color-error)">
        {problem_texts[problem]}
      </Text>
      <Group gap="xs">
        {!lasting.includes(problem) && (
          <Button size="xs" variant="default" onClick={again}>
            Try again
          </Button>
        )}
        <Button size="xs" variant="subtle" color="gray" autoFocus onClick={close}>
          Close
        </Button>
      </Group>
    </Stack>
  );
}

function Line({ status, children }: { status: ReactNode; children?: ReactNode }) {
  return (
    <Group gap="xs" justify="space-between">
      <Text size="sm" role="status" component="div">
        {status}
      </Text>
      {children && <Group gap="xs">{children}</Group>}
    </Group>
  );
}

function Discard({ close }: { close: () => void }) {
  return (
    <Button size="xs" variant="subtle" color="gray" onClick={close}>
      Discard
    </Button>
  );
}

/** Times a second that the level and the clock are looked at. */
const looks_per_second = 10;

type ProgressProps = { capture: Capture; seconds_max: number; close: () => void };

function InProgress({ capture, seconds_max, close }: ProgressProps) {
  const { level, seconds } = useLevel(capture);
  return (
    <Stack gap="xs">
      <Progress.Root size="md">
        <Progress.Section value={level * 100} aria-label="Level" color={level > 0.97 ? 'red' : 'teal'} />
      </Progress.Root>
      <Group gap="xs" justify="space-between">
        <Text size="sm" component="div">
          <span role="status">Recording…</span>{' '}
          <span className="figure" role="timer">
            {clockText(seconds)}
          </span>{' '}
          <Text span c="dimmed" inherit>
            of at most {clockText(seconds_max)}
          </Text>
        </Text>
        <Group gap="xs">
          <Button
            size="xs"
            color="red"
            variant="light"
            autoFocus
            onClick={capture.stop}
            leftSection={<StopIcon width={16} aria-hidden />}
          >
            Stop recording
          </Button>
          <Discard close={close} />
        </Group>
      </Group>
    </Stack>
  );
}

function useLevel(capture: Capture): { level: number; seconds: number } {
  const [look, setLook] = useState({ level: 0, seconds: 0 });
  useEffect(() => {
    const began_ms = performance.now();
    const timer = setInterval(
      () => setLook({ level: capture.level(), seconds: (performance.now() - began_ms) / 1_000 }),
      1_000 / looks_per_second,
    );
    return () => clearInterval(timer);
  }, [capture]);
  return look;
}
