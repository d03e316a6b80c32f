import type { App } from '../../src/app.ts';

/** Has a node read the state of its routes anew, which it otherwise believes for a second: any change of a route does. */
export async function rereadRoutes({ health }: Pick<App, 'health'>): Promise<void> {
  await health.closeCircuits('no such route');
}
