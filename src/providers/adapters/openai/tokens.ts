import type { JsonObject } from '../../../catalog/model.ts';
import type { RunState } from '../../provider.ts';
import { countIn, objectIn } from '../../http/reading.ts';
import { decimalOf, tokenCost, type TokenCounts } from '../../http/upstream-cost.ts';

type Counted = Pick<RunState & { phase: 'done' }, 'units' | 'upstream_cost'>;

/** Output of a call. */
type OutputKind = 'text' | 'image' | 'audio';

/** Units and cost by a `usage` object: tokens with their kinds, or the seconds of an input. */
export function readTokens(output_kind: OutputKind, usage: JsonObject | undefined, options: JsonObject): Counted {
  if (!usage) return {};
  const seconds = decimalOf(usage['seconds']);
  if (seconds !== undefined) return { units: { second: seconds } };
  const [input, output] = [countIn(usage, 'input_tokens'), countIn(usage, 'output_tokens')];
  if (input === undefined || output === undefined) return {};
  const details = { ...objectIn(usage, 'input_token_details'), ...objectIn(usage, 'input_tokens_details') };
  const cached = Math.min(countIn(details, 'cached_tokens') ?? 0, input);
  const cost = tokenCost(kindsOf(output_kind, usage, details, { input, output, cached }), options);
  return {
    units: {
      input_token: String(input - cached),
      output_token: String(output),
      ...(cached > 0 && { cached_input_token: String(cached) }),
    },
    ...(cost && { upstream_cost: cost }),
  };
}

type Counts = { input: number; output: number; cached: number };

/** Counts tokens by kind. Tokens without a kind are text in the input, and the requested kind in the output. */
function kindsOf(
  output_kind: OutputKind,
  usage: JsonObject,
  details: JsonObject,
  { input, output, cached }: Counts,
): TokenCounts {
  const image_input = countIn(details, 'image_tokens') ?? 0;
  const audio_input = countIn(details, 'audio_tokens') ?? 0;
  const text_tokens = countIn(objectIn(usage, 'output_tokens_details'), 'text_tokens') ?? 0;
  const text_output = output_kind === 'text' ? output : Math.min(text_tokens, output);
  return {
    text_input: Math.max(0, input - image_input - audio_input - cached),
    image_input,
    audio_input,
    cached_input: cached,
    text_output,
    ...(output_kind !== 'text' && { [`${output_kind}_output` as const]: output - text_output }),
  };
}
