import type { JsonObject } from '../../../catalog/model.ts';
import type { RunState } from '../../provider.ts';
import { countIn, objectIn, objectsIn } from '../../http/reading.ts';
import { tokenCost } from '../../http/upstream-cost.ts';

type Counted = Pick<RunState & { phase: 'done' }, 'units' | 'upstream_cost'>;

/** Units and cost by `usageMetadata`: thoughts are output that nobody sees. */
export function readTokens(answer: JsonObject, options: JsonObject): Counted {
  const usage = objectIn(answer, 'usageMetadata');
  const prompt = countIn(usage, 'promptTokenCount');
  const candidates = countIn(usage, 'candidatesTokenCount');
  if (prompt === undefined || candidates === undefined) return {};
  const tools = countIn(usage, 'toolUsePromptTokenCount') ?? 0;
  const cached = Math.min(countIn(usage, 'cachedContentTokenCount') ?? 0, prompt);
  const thoughts = countIn(usage, 'thoughtsTokenCount') ?? 0;
  const image_input = Math.min(modality(usage, 'promptTokensDetails', 'IMAGE') ?? 0, prompt - cached);
  // Images are what these models make: so is what has no modality.
  const image_output = Math.min(modality(usage, 'candidatesTokensDetails', 'IMAGE') ?? candidates, candidates);
  const cost = tokenCost(
    {
      text_input: prompt - cached - image_input + tools,
      image_input,
      cached_input: cached,
      image_output,
      text_output: candidates - image_output + thoughts,
    },
    options,
  );
  return {
    units: {
      input_token: String(prompt - cached + tools),
      output_token: String(candidates + thoughts),
      ...(cached > 0 && { cached_input_token: String(cached) }),
    },
    ...(cost && { upstream_cost: cost }),
  };
}

/** The tokens of one modality; undefined where none is told of. */
function modality(usage: JsonObject, list: string, name: string): number | undefined {
  const details = objectsIn(usage, list);
  const one = details.find((detail) => detail['modality'] === name);
  return details.length === 0 ? undefined : one && countIn(one, 'tokenCount');
}
