import type { Cost } from './common.ts';

/** One row of a price, in the catalogue's currency. */
export type PriceView = {
  unit: string;
  amount: string;
  per: number;
  currency: string;
  when?: Readonly<Record<string, unknown>>;
  above_input_tokens?: number;
};

/** Speed of a model: medians of the last seven days. */
export type ModelSpeedView = {
  model: string;
  /** Calls of this account, or of all where it has too few. */
  of: 'account' | 'service';
  /** Chat: until the first token. */
  first_p50_ms: number | null;
  total_p50_ms: number | null;
  tokens_per_second: number | null;
};

/** A price that begins on a day (UTC), or the end of a model. */
export type PriceChangeView = { model: string; display_name: string; on: string; is_coming: boolean } & (
  | { is: 'price'; price: PriceView; before: PriceView | null }
  | { is: 'end'; replaced_by: string | null }
);

/** Cost of so many units of a model; `unpriced`: the units that it has no price for. */
export type UnitCostView = { model: string; cost: Cost; unpriced: string[] };

/** Counts and times of a model for this account in the last seven days. */
export type PaceView = {
  ended: number;
  succeeded: number;
  p50_ms: number | null;
  p95_ms: number | null;
  /** Chat: until the first token. */
  first_p50_ms: number | null;
};

/** A model as `GET /v1/models` tells it, and how it has served. */
export type ModelView = {
  id: string;
  display_name: string;
  owned_by: string;
  modality: 'chat' | 'embedding' | 'rerank' | 'moderation' | 'image' | 'video' | 'audio';
  description: string;
  input_schema: Readonly<Record<string, unknown>>;
  output_types: readonly string[];
  pricing: readonly PriceView[];
  limits: Readonly<Record<string, number>>;
  capabilities: readonly string[];
  status: 'available' | 'degraded' | 'unavailable';
  /** The first day on which it is no longer offered. */
  retires?: string;
  replaced_by?: string;
  /** The models behind an alias. */
  models?: readonly string[];
  pace: PaceView | null;
};
