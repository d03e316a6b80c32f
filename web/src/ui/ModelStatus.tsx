import { Tooltip } from '@mantine/core';
import type { ModelView } from '../../../src/dashboard/views/models.ts';
import { Status } from './Status.tsx';

const meanings = {
  available: 'All of its routes are in use.',
  degraded: 'Some of its routes are paused because they kept failing; the others are in use.',
  unavailable: 'All of its routes are paused because they kept failing, for five minutes at most.',
};

/** A badge that tells whether a model takes work now. */
export function ModelStatus({ of }: { of: ModelView['status'] }) {
  return (
    <Tooltip label={meanings[of]} multiline maw={280}>
      <span>
        <Status of={of} />
      </span>
    </Tooltip>
  );
}
