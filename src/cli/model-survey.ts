import { surveyCatalog, type Origin, type Survey } from '../catalog/catalog.ts';
import { dayOf } from '../catalog/dated.ts';
import { keyName } from '../catalog/default.ts';
import type { Model, Route } from '../catalog/model.ts';
import { unknownModelText } from '../catalog/model-errors.ts';
import { readCommandConfig } from '../app/running.ts';
import { systemClock } from '../lib/clock.ts';
import { nearest } from '../lib/edit-distance.ts';
import { adapterFacts } from '../providers/facts.ts';
import { adapters } from '../providers/index.ts';
import { CommandError } from './command.ts';

/** A model and what this machine can do with it. */
export type SurveyedModel = { origin: Origin; model: Model; routes: SurveyedRoute[]; usable: boolean };

/** `missing`: the variable or the file that a key should be in. */
export type SurveyedRoute = { route: Route; usable: boolean; missing?: string };

/** Reads the catalogue of MEDLEY_CONFIG, or the default one. Needs no database. */
export async function survey(): Promise<Survey & { surveyed: SurveyedModel[] }> {
  const { config_file } = readCommandConfig();
  const catalog = await surveyCatalog({ config_file, ...adapterFacts(adapters) });
  const today = dayOf(systemClock.now());
  const surveyed = catalog.models.map(({ origin, model }): SurveyedModel => {
    const routes = model.routes.map((route) => surveyRoute(catalog, model, route));
    const has_ended = model.retirement !== undefined && model.retirement.on <= today;
    return { origin, model, routes, usable: !has_ended && routes.some((route) => route.usable) };
  });
  return { ...catalog, surveyed };
}

function surveyRoute({ catalog, providers }: Survey, model: Model, route: Route): SurveyedRoute {
  const provider = catalog.providers.get(route.provider);
  const usable = provider !== undefined && adapters[provider.adapter]?.serves(model.kind) === true;
  const entry = providers.get(route.provider);
  const missing = provider === undefined && entry ? keyName(entry) : '';
  return { route, usable, ...(missing !== '' && { missing }) };
}

/** The model of this id. Throws CommandError if there is none. */
export function surveyedModel(surveyed: readonly SurveyedModel[], id: string): SurveyedModel {
  const match = surveyed.find(({ model }) => model.id === id);
  if (match) return match;
  const near = nearest(
    id,
    surveyed.map(({ model }) => model.id),
  );
  throw new CommandError(`${unknownModelText(id)}${near === undefined ? '' : ` Did you mean ${near}?`}`);
}
