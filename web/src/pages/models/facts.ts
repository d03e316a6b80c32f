import type { ModelSpeedView, ModelView, PaceView, PriceView } from '../../../../src/dashboard/views/models.ts';
import { kinds } from './search.ts';
import { durationText } from '../../ui/duration.ts';
import { oneDecimal } from '../../ui/one-decimal.ts';
import { capitalized } from '../../ui/kinds.ts';

/** Facts of models as people read and compare them. */

const capability_names: Readonly<Record<string, string>> = {
  tools: 'Tools',
  images: 'Vision (images)',
  documents: 'Documents',
  json_schema: 'JSON schema',
  thinking: 'Reasoning',
  streaming: 'Streaming',
};

/** `Vision (images)` of `images`; others in their own words. */
export function capabilityText(capability: string): string {
  return capability_names[capability] ?? capitalized(capability.replaceAll('_', ' '));
}

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** `200K`, `1M`; a dash for a model without such a limit. */
export function tokensText(tokens: number | undefined): string {
  return tokens === undefined ? '–' : compact.format(tokens);
}

export function contextOf({ limits }: Pick<ModelView, 'limits'>): number | undefined {
  return limits['context_tokens'] ?? limits['max_input_tokens'];
}

/** `98.5 %`; a dash where nothing has ended. */
export function successText(pace: PaceView | null): string {
  if (!pace || pace.ended === 0) return '–';
  const percent = (pace.succeeded / pace.ended) * 100;
  return `${percent % 100 === 0 ? percent : oneDecimal(percent)} %`;
}

/** `85 tokens/s` for a model that writes, `3.2 s` for one that makes something. */
export function speedText(speed: ModelSpeedView | undefined): string {
  if (!speed) return '–';
  const { tokens_per_second, total_p50_ms } = speed;
  if (tokens_per_second !== null) return `${tokens_per_second.toLocaleString('en')} tokens/s`;
  return total_p50_ms === null ? '–' : durationText(total_p50_ms);
}

/** Time to the first token, and a note where the calls are those of all accounts. */
export function speedNote({ of, first_p50_ms }: ModelSpeedView): string {
  const parts = [
    first_p50_ms === null ? '' : `first token ${durationText(first_p50_ms)}`,
    of === 'service' ? 'all accounts' : '',
  ];
  return parts.filter((part) => part !== '').join(', ');
}

/** Orders models of one kind from the fastest: by tokens per second, and those without by the time to the end. */
export function slownessOf(speed: ModelSpeedView | undefined): number | null {
  if (!speed) return null;
  return speed.tokens_per_second === null ? speed.total_p50_ms : -speed.tokens_per_second;
}

const usual_input = 3;

/**
 * Orders models of one kind by price: of those that read and write three tokens of input for one of output, of the others the cheapest row.
 * It is no price: what something costs is computed by the service.
 */
export function priceRank({ pricing }: Pick<ModelView, 'pricing'>): number | null {
  const usual = pricing.filter(({ above_input_tokens }) => above_input_tokens === undefined);
  const cheapest = (rows: readonly PriceView[]) =>
    rows.length === 0 ? null : Math.min(...rows.map(({ amount, per }) => Number(amount) / per));
  const input = cheapest(usual.filter(({ unit }) => unit === 'input_token'));
  const output = cheapest(usual.filter(({ unit }) => unit === 'output_token'));
  if (input !== null && output !== null) return usual_input * input + output;
  return pricing.length === 0 ? 0 : cheapest(usual);
}

/** The place of a kind in lists of several kinds. */
export function kindPlace(kind: ModelView['modality']): number {
  return kinds.indexOf(kind);
}
