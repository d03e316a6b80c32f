import { Button, Tooltip } from '@mantine/core';
import { CheckIcon, LinkIcon } from '@heroicons/react/24/outline';
import { below } from '../../below.ts';
import { isRecord, queryOf } from '../../api.ts';
import { useCopying } from '../../ui/useCopying.ts';

/** Longer addresses are cut or refused on their way. */
const length_max = 8_000;

type Props = { model: string; beside?: string | undefined; input: Record<string, unknown> };

/** Copies an address that opens the playground with this model and these parameters, and nothing else. */
export function ShareButton({ model, beside, input }: Props) {
  const query = queryOf({ model, beside, input: JSON.stringify(withoutFiles(input)) });
  const link = `${window.location.origin}${below('/playground')}${query}`;
  const is_long = link.length > length_max;
  const { copied, copy } = useCopying(link);
  return (
    <Tooltip
      multiline
      maw={280}
      label={
        is_long
          ? 'These parameters are too long for a link.'
          : 'Contains the model and its parameters, but no files from this computer.'
      }
    >
      <Button
        size="xs"
        variant="subtle"
        color={copied ? 'teal' : 'gray'}
        onClick={copy}
        disabled={is_long}
        leftSection={copied ? <CheckIcon width={16} aria-hidden /> : <LinkIcon width={16} aria-hidden />}
      >
        {copied ? 'Link copied' : 'Copy a link'}
      </Button>
    </Tooltip>
  );
}

/** Without what was read from files, which no address can carry. */
function withoutFiles(value: unknown): unknown {
  const isFile = (each: unknown) => typeof each === 'string' && each.startsWith('data:');
  if (Array.isArray(value)) return value.filter((each) => !isFile(each)).map(withoutFiles);
  if (!isRecord(value)) return value;
  const members = Object.entries(value).filter(([, each]) => !isFile(each));
  return Object.fromEntries(members.map(([name, each]) => [name, withoutFiles(each)]));
}
