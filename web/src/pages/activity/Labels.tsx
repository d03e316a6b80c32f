import { Badge } from '@mantine/core';
import type { LabelsView } from '../../../../src/dashboard/views/activity.ts';
import { BadgeTo } from '../../ui/LinkTo.tsx';
import { activityAddress } from './address.ts';
import { pairName, type LabelSearch } from './search.ts';

type Label = { text: string; search: LabelSearch | undefined };

type Props = {
  of: LabelsView;
  /** The type of error of a call that failed. */
  error?: string | null | undefined;
  /** So many, and how many more there are. */
  shown_max?: number;
};

/** Names that a caller put on a call or a generation, and its error: each leads to all others with it. */
export function Labels({ of, error, shown_max = Infinity }: Props) {
  const all = [...labelsOf(of), ...(error ? [{ text: `error: ${error}`, search: { error } }] : [])];
  const shown = all.slice(0, shown_max);
  return (
    <>
      {shown.map(({ text, search }, index) => (
        <LabelBadge key={`${index} ${text}`} text={text} href={search && activityAddress(search)} />
      ))}
      {all.length > shown.length && `+${all.length - shown.length}`}
    </>
  );
}

function LabelBadge({ text, href }: { text: string; href: string | undefined }) {
  const look = { size: 'lg', variant: 'light', tt: 'none', maw: '100%' } as const;
  if (href === undefined) {
    return (
      <Badge {...look} color="gray" title={text}>
        {text}
      </Badge>
    );
  }
  return (
    <BadgeTo {...look} href={href} title={text}>
      {text}
    </BadgeTo>
  );
}

/** A pair of which no list can be had, for its name, its length or its empty value, leads nowhere. */
function labelsOf({ user, tags, metadata }: LabelsView): Label[] {
  const pairs = Object.entries(metadata).filter(
    ([name, value]) => name !== 'tags' && !(name === 'user' && value === user),
  );
  return [
    ...(user === null ? [] : [{ text: `user: ${user}`, search: user === '' ? undefined : { user } }]),
    ...tags.map((tag) => ({ text: `tag: ${tag}`, search: { tag } })),
    ...pairs.map(([name, value]) => {
      const parameter = value === '' ? undefined : pairName(name);
      return { text: `${name}: ${value}`, search: parameter && { [parameter]: value } };
    }),
  ];
}
