/** One row of a price, in the catalogue's currency. */
export type PriceView = {
  unit: string;
  amount: string;
  per: number;
  currency: string;
  when?: Readonly<Record<string, unknown>>;
  above_input_tokens?: number;
};

/** Counts and times of a model for this account in the last seven days. */
export type PaceView = {
  ended: number;
  succeeded: number;
  p50_ms: number | null;
  p95_ms: number | null;
  /** Chat: until the first words. */
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
  /** Of an alias: the models behind it. */
  models?: readonly string[];
  pace: PaceView | null;
};
