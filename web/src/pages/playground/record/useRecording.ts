import { useEffect, useRef, useState } from 'react';
import { beginCapture, RecordError, toWav, type Capture, type RecordProblem } from './microphone.ts';

export type RecordingState =
  | { is: 'asking' }
  | { is: 'recording'; capture: Capture }
  | { is: 'converting' }
  | { is: 'recorded'; file: File; url: string; seconds: number }
  | { is: 'failed'; problem: RecordProblem };

/** Records as soon as it is there, at most so many seconds, and lets go of the microphone when it is gone. */
export function useRecording(seconds_max: number, file_name: string) {
  const [state, setState] = useState<RecordingState>({ is: 'asking' });
  const [attempt, setAttempt] = useState(1);
  const longest = useRef(seconds_max); // of the moment at which it began
  useEffect(() => {
    const ending = new AbortController();
    void record(longest.current, file_name, ending.signal, (next) => ending.signal.aborted || setState(next));
    return () => ending.abort();
  }, [attempt, file_name]);
  const url = state.is === 'recorded' ? state.url : undefined;
  useEffect(() => () => (url === undefined ? undefined : URL.revokeObjectURL(url)), [url]);
  const again = () => {
    setState({ is: 'asking' });
    setAttempt((before) => before + 1);
  };
  return { state, again, seconds_max: longest.current };
}

async function record(
  seconds_max: number,
  file_name: string,
  signal: AbortSignal,
  show: (state: RecordingState) => void,
): Promise<void> {
  try {
    if (seconds_max < 1) throw new RecordError('no_room');
    const capture = await beginCapture();
    signal.addEventListener('abort', capture.stop);
    if (signal.aborted) capture.stop();
    const ending = setTimeout(capture.stop, seconds_max * 1_000);
    show({ is: 'recording', capture });
    const recorded = await capture.recorded;
    clearTimeout(ending);
    if (signal.aborted) return;
    show({ is: 'converting' });
    const { file, seconds } = await toWav(recorded, seconds_max, file_name);
    if (signal.aborted) return; // nobody would revoke its URL
    show({ is: 'recorded', file, url: URL.createObjectURL(file), seconds });
  } catch (error) {
    show({ is: 'failed', problem: error instanceof RecordError ? error.problem : 'unsupported' });
  }
}
