import { mapInput } from '../catalog/input.ts';
import {
  isMediaKind,
  isObject,
  type JsonObject,
  type MediaKind,
  type Model,
  type Route,
  type Settings,
} from '../catalog/model.ts';
import { estimateUnits, freezePricing, holdAmount, type Units } from '../catalog/price.ts';
import { sampleInput } from '../catalog/sample.ts';
import { fitCosts, upstreamCharge } from '../catalog/upstream-cost.ts';
import { ApiError } from '../errors.ts';
import { findLong } from '../lib/find-long.ts';
import { parseExactly, TooManyLongIntegers } from '../lib/long-integers.ts';
import { exact } from '../money/money.ts';
import { Maker } from '../providers/sandbox/maker.ts';
import { readMediaRequest } from '../providers/sandbox/media-request.ts';

/** The reason why a route cannot be tested. `is_input`: the input for it is wrong. */
export class TestCallError extends Error {
  override name = 'TestCallError';
  readonly is_input: boolean;

  constructor(message: string, options: { is_input?: boolean } = {}) {
    super(message);
    this.is_input = options.is_input ?? false;
  }
}

/** The request to a route, and its approximate cost in the base currency. */
export type TestCallPlan = {
  /** As a caller would give it, with defaults. */
  input: JsonObject;
  /** The same in the upstream's words. */
  sent: JsonObject;
  /** For a caller; null where it depends on what comes back. */
  estimated_cost: string | null;
  /** By the cost rows of the route; null where there are none that tell. */
  upstream_estimate: string | null;
  currency: string;
};

/**
 * Plans a test call with the given input (of models that answer at once: the message), or one of the schema's
 * examples. Throws TestCallError naming wrong fields.
 */
export async function planTestCall(
  { model, route, settings }: { model: Model; route: Route; settings: Settings },
  text: string | undefined,
): Promise<TestCallPlan> {
  const { base_currency: currency } = settings;
  if (!isMediaKind(model.kind)) {
    const input = { message: text ?? 'Say hello in one word.' };
    return { input, sent: input, estimated_cost: null, upstream_estimate: null, currency };
  }
  const input = await readInput(model, text);
  const units = unitsHeld(model, input);
  return {
    input,
    sent: mapInput(route, input),
    estimated_cost: units && estimateOf(model, input, units, currency),
    upstream_estimate: units && upstreamEstimate(route, input, units, settings),
    currency,
  };
}

async function readInput(model: Model, text: string | undefined): Promise<JsonObject> {
  const input = text === undefined ? await sampleOf(model) : parseInput(text);
  const checked = model.validateInput(input);
  if (checked.ok) return checked.input;
  throw new TestCallError(checked.errors.map(({ message }) => message).join('\n'), { is_input: true });
}

function parseInput(text: string): JsonObject {
  const parsed = parse(text);
  if (!isObject(parsed)) throw new TestCallError('The input must be a JSON object.', { is_input: true });
  const long = findLong({ input: parsed });
  if (long) throw new TestCallError(long.message, { is_input: true });
  return parsed;
}

function parse(text: string): unknown {
  try {
    return parseExactly(text);
  } catch (error) {
    if (error instanceof TooManyLongIntegers)
      throw new TestCallError(`The input ${error.message}.`, { is_input: true });
    return undefined;
  }
}

/** Files for what takes files: the sandbox makes them. */
async function sampleOf(model: Model): Promise<JsonObject> {
  const files = new Map<MediaKind, string>();
  const maker = new Maker();
  try {
    for (const { kind } of model.media) {
      const order = readMediaRequest(kind, kind === 'image' ? { width: 768, height: 768 } : { duration: 3 }, 'Hello');
      const output = await maker.make(order, AbortSignal.timeout(30_000));
      const [bytes] = output === 'busy' ? [] : output;
      if (bytes) files.set(kind, `data:${types[kind]};base64,${bytes.toString('base64')}`);
    }
  } finally {
    await maker.close();
  }
  return sampleInput(model, (kind) => files.get(kind) ?? '');
}

const types = { image: 'image/png', video: 'video/mp4', audio: 'audio/wav' };

/** Returns null if they depend on how long a file is. */
function unitsHeld(model: Model, input: JsonObject): Units | null {
  try {
    return estimateUnits(model, input);
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}

function estimateOf(model: Model, input: JsonObject, units: Units, currency: string): string {
  return exact(holdAmount(freezePricing(model, input, currency, { currencies: new Map([[currency, '1']]) }), units));
}

function upstreamEstimate(route: Route, input: JsonObject, units: Units, settings: Settings): string | null {
  const charge = upstreamCharge(settings, {
    rows: fitCosts(route.cost, () => input),
    units,
    held_units: units,
    rate: '1',
  });
  return charge.basis === 'unknown' ? null : exact(charge.base);
}
