import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { ModelView } from '../../../../../src/dashboard/views/models.ts';
import { api } from '../../../api.ts';
import { usePlace } from '../../../session.tsx';
import { renewBalance } from '../../../ui/balance.ts';

/** The run of a model on this page: being created, a task, or none and why. */
export type Place = { is: 'none' } | { is: 'starting' } | { is: 'task'; id: string } | { is: 'refused'; error: Error };

/** Tasks of the page by their model. */
export type Runs = Readonly<Record<string, string>>;

type Parts = {
  models: readonly ModelView[];
  /** The input of a model, as it is sent. */
  inputOf: (model: ModelView) => Record<string, unknown>;
  /** The tasks in the address, where they outlive a reload. */
  runs: Runs;
  setRuns: (runs: Runs) => void;
};

/** Starts the models at once, each for itself: one that is refused does not hold back the others. */
export function useRuns({ models, inputOf, runs, setRuns }: Parts) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const [fresh, setFresh] = useState<Readonly<Record<string, Place>>>({});
  const startOne = async (model: ModelView): Promise<[string, Place]> => {
    let place: Place;
    try {
      const { id } = await api.post<{ id: string }>(`${base}/generate`, { model: model.id, input: inputOf(model) });
      place = { is: 'task', id };
    } catch (error) {
      place = { is: 'refused', error: error instanceof Error ? error : new Error(String(error)) };
    }
    setFresh((before) => ({ ...before, [model.id]: place }));
    return [model.id, place];
  };
  const start = async () => {
    setFresh(Object.fromEntries(models.map(({ id }) => [id, { is: 'starting' }])));
    const places = await Promise.all(models.map(startOne));
    setRuns(Object.fromEntries(places.flatMap(([id, place]) => (place.is === 'task' ? [[id, place.id]] : []))));
    renewBalance(queries, account.id);
    void queries.invalidateQueries({ queryKey: [account.id, 'runs'] });
    return places.every(([, place]) => place.is === 'task');
  };
  const placeOf = ({ id }: Pick<ModelView, 'id'>): Place => {
    const task = runs[id];
    return fresh[id] ?? (task === undefined ? { is: 'none' } : { is: 'task', id: task });
  };
  const is_starting = models.some((model) => placeOf(model).is === 'starting');
  return { start, placeOf, is_starting, clear: () => setFresh({}) };
}
