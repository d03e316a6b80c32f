import { styles, type Style } from './answers.ts';
import { hello, results, steps, words_of_image, type Line, type Step } from './programme.ts';
import type { ServedRequest } from './upstream.ts';

export type Verdict = { style: Style; step: Step; result: 'ok' | 'absent' | { failed: string }; raised?: string };

/** A verdict on each step with each upstream style: what the client said, beside what the upstream saw of it. */
export function judge(lines: readonly Line[], requests: readonly ServedRequest[], is_agent = false): Verdict[] {
  return styles.flatMap((style) =>
    steps.map((step) => {
      const line = lines.find((one) => one.model === modelOf(style) && one.step === step);
      const seen = requests.filter((one) => one.style === style && one.step === step);
      return { style, step, ...verdictOf(step, line, seen, is_agent) };
    }),
  );
}

/** The catalogue's model with an upstream of this style. */
export function modelOf(style: Style): string {
  return `clients/${style}`;
}

function verdictOf(
  step: Step,
  line: Line | undefined,
  seen: readonly ServedRequest[],
  is_agent: boolean,
): Pick<Verdict, 'result' | 'raised'> {
  if (!line) return { result: { failed: 'the driver ended before' } };
  if ('absent' in line) return { result: 'absent' };
  if (step === 'overflow') {
    if (!('error' in line)) return { result: { failed: 'nothing was raised' } };
    if (seen.length === 0) return { result: { failed: say(line.error) } };
    return { result: 'ok', raised: line.error.class };
  }
  if ('error' in line) return { result: { failed: say(line.error) } };
  const fault = faultOf(step, line, seen, is_agent);
  return { result: fault === undefined ? 'ok' : { failed: fault } };
}

function faultOf(
  step: Step,
  { text, pieces }: { text: string; pieces: number },
  seen: readonly ServedRequest[],
  is_agent: boolean,
): string | undefined {
  if (step === 'leave') {
    if (pieces === 0) return 'no piece came';
    // Agents ask for thinking, and what thinks is read on for its usage.
    return is_agent || seen.every(({ answer }) => answer === 'left')
      ? undefined
      : 'the upstream went on after the client had left';
  }
  if (step === 'stream' && pieces < 2) return `${pieces} pieces`;
  if (step === 'tools') {
    if (!results.every((result) => text.includes(result))) return `the last text was ${JSON.stringify(text)}`;
    const expected = results.length + 1;
    const is_right = is_agent ? seen.length >= expected : seen.length === expected;
    return is_right ? undefined : `${seen.length} requests instead of ${expected}`;
  }
  const expected = step === 'image' ? words_of_image : hello;
  return text === expected ? undefined : `the text was ${JSON.stringify(text.slice(0, 200))}`;
}

function say(error: { class: string; message: string }): string {
  return `${error.class}: ${error.message.replaceAll(/\s+/g, ' ').slice(0, 200)}`;
}
