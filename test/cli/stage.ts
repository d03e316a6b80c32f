import { afterAll, beforeAll } from 'vitest';
import { setStage, type Stage } from '../webhooks/setup.ts';
import { commandsBeside, type Commands } from './medley.ts';

/** A service with a receiver, and its commands, for all tests of a file. */
export function stageOfFile(): { readonly stage: Stage; readonly commands: Commands } {
  let shared: { stage: Stage; commands: Commands } | undefined;
  const now = () => {
    if (!shared) throw new Error('the stage is set before the first test');
    return shared;
  };
  beforeAll(async () => {
    const stage = await setStage();
    shared = { stage, commands: commandsBeside(stage.test) };
  });
  afterAll(() => shared?.stage.stop());
  return {
    get stage() {
      return now().stage;
    },
    get commands() {
      return now().commands;
    },
  };
}
