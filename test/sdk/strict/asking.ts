import type { Answered } from '../../helpers/app.ts';
import type { Sample } from './vendor-types.ts';

/** Throws for another status than is expected: an error is no answer of this type. */
export function sampleOf(what: string, type: string, answer: Answered, status = 200): Sample {
  if (answer.status !== status) throw new Error(`${what}: ${answer.status} ${answer.text.slice(0, 500)}`);
  return { what, type, value: JSON.parse(answer.text) };
}

/** The data of all events of a stream. Throws for a name that is not the type of its event. */
export function eventsIn({ status, text }: Answered): unknown[] {
  if (status !== 200) throw new Error(`${status} ${text.slice(0, 500)}`);
  const frames = text
    .split(/\r?\n\r?\n/)
    .filter((frame) => frame.includes('data: ') && !frame.includes('data: [DONE]'));
  return frames.map((frame) => {
    const { name, data = '' } = /^(?:event: (?<name>.*)\n)?data: (?<data>.*)$/m.exec(frame)?.groups ?? {};
    const value = JSON.parse(data);
    if (name !== undefined && name !== value.type) throw new Error(`an event ${name} says ${data.slice(0, 100)}`);
    return value;
  });
}
