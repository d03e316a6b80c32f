import type { JsonObject } from '../../../catalog/model.ts';
import { countIn, objectIn, objectsIn, textIn } from '../../http/reading.ts';
import { tokenCost } from '../../http/upstream-cost.ts';
import type { RunContext, RunState } from '../../provider.ts';

type Counted = Pick<RunState & { phase: 'done' }, 'units' | 'upstream_cost'>;

/** Units and cost by `usage`: thoughts are output that nobody sees. */
export function readUsage(interaction: JsonObject, { kind, options }: RunContext): Counted {
  const usage = objectIn(interaction, 'usage');
  const input = countIn(usage, 'total_input_tokens');
  const output = countIn(usage, 'total_output_tokens');
  if (input === undefined || output === undefined) return {};
  const cached = Math.min(countIn(usage, 'total_cached_tokens') ?? 0, input);
  const thoughts = countIn(usage, 'total_thought_tokens') ?? 0;
  const part = (list: string, name: string, most: number) => Math.min(modality(usage, list, name) ?? 0, most);
  const [image, audio, video] = ['image', 'audio', 'video'].map((name) =>
    part('input_tokens_by_modality', name, input),
  );
  const files = { image_input: image ?? 0, audio_input: audio ?? 0, video_input: video ?? 0 };
  const text_input = Math.max(0, input - cached - files.image_input - files.audio_input - files.video_input);
  // What has no modality is of the kind that the model makes.
  const media_output = Math.min(modality(usage, 'output_tokens_by_modality', kind) ?? output, output);
  const text_output = output - media_output + thoughts;
  const cost = tokenCost(
    { text_input, ...files, cached_input: cached, text_output, [`${kind}_output` as const]: media_output },
    options,
  );
  return {
    units: {
      input_token: String(input - cached),
      output_token: String(output + thoughts),
      ...(cached > 0 && { cached_input_token: String(cached) }),
    },
    ...(cost && { upstream_cost: cost }),
  };
}

/** The tokens of one modality; undefined where none has one. */
function modality(usage: JsonObject, list: string, name: string): number | undefined {
  const details = objectsIn(usage, list);
  const one = details.find((detail) => textIn(detail, 'modality')?.toLowerCase() === name);
  return details.length === 0 ? undefined : one ? countIn(one, 'tokens') : 0;
}
