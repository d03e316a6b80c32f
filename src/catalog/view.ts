import type { Condition, JsonObject, Kind, Model, Unit } from './model.ts';

/** A price as callers see it, in the base currency. */
export type PublicPrice = {
  unit: Unit;
  amount: string;
  per: number;
  currency: string;
  when?: Condition;
  above_input_tokens?: number;
};

export type ModelStatus = 'available' | 'degraded' | 'unavailable';

/** A model in /v1/models: one record that clients of the OpenAI and Anthropic styles can read. */
export type ModelRecord = {
  id: string;
  object: 'model';
  type: 'model';
  created: number;
  created_at: string;
  owned_by: string;
  display_name: string;
  modality: Kind;
  description: string;
  input_schema: JsonObject;
  output_types: readonly string[];
  pricing: PublicPrice[];
  limits: Model['limits'];
  capabilities: readonly string[];
  status: ModelStatus;
  retires?: string;
  replaced_by?: string;
};

/** The public record of a model. Prices are those of the catalogue, whatever currency the caller pays in. */
export function modelRecord(model: Model, base_currency: string, status: ModelStatus): ModelRecord {
  const { retirement } = model;
  return {
    id: model.id,
    object: 'model',
    type: 'model',
    created: model.created,
    created_at: new Date(model.created * 1000).toISOString(),
    owned_by: model.owned_by,
    display_name: model.name,
    modality: model.kind,
    description: model.description,
    input_schema: model.input_schema,
    output_types: model.output_types,
    pricing: model.price.map((row) => ({ ...row, currency: base_currency })),
    limits: model.limits,
    capabilities: model.capabilities,
    status,
    ...(retirement && { retires: retirement.on }),
    ...(retirement?.replaced_by !== undefined && { replaced_by: retirement.replaced_by }),
  };
}
