import { Box, Group, Kbd, Loader, Text, TextInput, VisuallyHidden } from '@mantine/core';
import { useDebouncedValue, useMediaQuery } from '@mantine/hooks';
import { MagnifyingGlassIcon } from '@heroicons/react/24/outline';
import { useQueryClient } from '@tanstack/react-query';
import { useRouter } from '@tanstack/react-router';
import { useEffect, useId, useState, type KeyboardEvent } from 'react';
import { below } from '../below.ts';
import { useSession } from '../session.tsx';
import { Modal } from '../ui/Modal.tsx';
import { askedFor, useFound, type Entry } from './found.ts';

/**
 * The search of the dashboard: a field whose lines are chosen by arrows and opened by Enter (the combobox pattern of
 * ARIA), or by a click.
 */
export function Palette({ close }: { close: () => void }) {
  const [text, setText] = useState('');
  const [settled] = useDebouncedValue(text, 150);
  const [chosen, setChosen] = useState(0);
  const { entries, is_complete, problem } = useFound(settled);
  const is_current = is_complete && askedFor(text) === askedFor(settled);
  const go = useGo(close);
  const enter = useEnter(entries, is_current, go);
  const is_phone = useMediaQuery('(max-width: 36em)', false, { getInitialValueInEffect: false });
  const list = useId();
  const active = Math.min(chosen, entries.length - 1);
  const move = (to: number) => setChosen(entries.length === 0 ? 0 : (to + entries.length) % entries.length);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    const to = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: entries.length - 1, PageUp: 0 }[event.key];
    if (to !== undefined) move(to);
    else if (event.key === 'Enter') enter(active);
    else return;
    event.preventDefault();
  };
  return (
    <Modal opened onClose={close} title="Search" size="lg" fullScreen={is_phone} centered={false} yOffset="8vh">
      <TextInput
        data-autofocus
        role="combobox"
        aria-label="Search for pages, models, keys, ids and prompts"
        aria-autocomplete="list"
        aria-expanded={entries.length > 0}
        aria-controls={list}
        {...(active >= 0 && { 'aria-activedescendant': optionId(list, active) })}
        placeholder="Pages, models, keys, ids, prompts"
        autoComplete="off"
        spellCheck={false}
        maxLength={200}
        leftSection={<MagnifyingGlassIcon width={18} aria-hidden />}
        rightSection={is_current ? null : <Loader size={16} aria-hidden />}
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setChosen(0);
        }}
        onKeyDown={onKeyDown}
      />
      <Lines list={list} entries={entries} active={active} choose={setChosen} go={go} />
      <Outcome entries={entries} is_current={is_current} problem={problem} />
    </Modal>
  );
}

const optionId = (list: string, index: number) => `${list}-${index}`;

/** Goes where a line leads. */
function useGo(close: () => void): (entry: Entry) => void {
  const router = useRouter();
  const queries = useQueryClient();
  const { choose } = useSession();
  return (entry) => {
    close();
    if ('account_id' in entry) {
      choose(entry.account_id);
      void queries.invalidateQueries();
    } else if (entry.is_document) location.assign(below(entry.href));
    else router.history.push(below(entry.href));
  };
}

/** Opens the chosen line; what was typed or pasted a moment ago is looked for first. */
function useEnter(entries: readonly Entry[], is_current: boolean, go: (entry: Entry) => void): (at: number) => void {
  const [awaited, setAwaited] = useState<number>();
  useEffect(() => {
    if (awaited === undefined || !is_current) return;
    setAwaited(undefined);
    const entry = entries[Math.min(awaited, entries.length - 1)];
    if (entry) go(entry);
  }, [awaited, is_current, entries, go]);
  return (at) => setAwaited(Math.max(0, at));
}

type LinesProps = {
  list: string;
  entries: readonly Entry[];
  active: number;
  choose: (index: number) => void;
  go: (entry: Entry) => void;
};

function Lines({ list, entries, active, choose, go }: LinesProps) {
  useEffect(() => {
    document.getElementById(optionId(list, active))?.scrollIntoView({ block: 'nearest' });
  }, [list, active]);
  const groups = groupsOf(entries);
  return (
    <Box id={list} mt="sm" {...(entries.length > 0 && { role: 'listbox', 'aria-label': 'Results' })}>
      {groups.map(([name, lines]) => (
        <div key={name} role="group" aria-label={name}>
          <Text size="xs" fw={600} c="dimmed" px="sm" pt="xs" aria-hidden>
            {name}
          </Text>
          {lines.map(({ entry, index }) => (
            <Line
              key={index}
              id={optionId(list, index)}
              entry={entry}
              is_active={index === active}
              onPoint={() => choose(index)}
              onOpen={() => go(entry)}
            />
          ))}
        </div>
      ))}
    </Box>
  );
}

/** Lines by their groups, in their order, with their places among all. */
function groupsOf(entries: readonly Entry[]): [name: string, lines: { entry: Entry; index: number }[]][] {
  const groups = new Map<string, { entry: Entry; index: number }[]>();
  for (const [index, entry] of entries.entries()) {
    const lines = groups.get(entry.group) ?? [];
    lines.push({ entry, index });
    groups.set(entry.group, lines);
  }
  return [...groups];
}

type LineProps = { id: string; entry: Entry; is_active: boolean; onPoint: () => void; onOpen: () => void };

function Line({ id, entry: { title, detail }, is_active, onPoint, onOpen }: LineProps) {
  return (
    <Group
      id={id}
      role="option"
      aria-selected={is_active}
      className="found"
      justify="space-between"
      wrap="nowrap"
      gap="sm"
      px="sm"
      onMouseMove={() => !is_active && onPoint()}
      onMouseDown={(event) => event.preventDefault()} // the field keeps the focus
      onClick={onOpen}
    >
      <Box miw={0} flex={1}>
        <Text size="sm" truncate>
          {title}
        </Text>
        {detail !== '' && (
          <Text size="xs" className="found-detail" truncate>
            {detail}
          </Text>
        )}
      </Box>
      {is_active && (
        <Kbd size="xs" aria-hidden>
          ↵
        </Kbd>
      )}
    </Group>
  );
}

type OutcomeProps = { entries: readonly Entry[]; is_current: boolean; problem: string | undefined };

/** In words, for those who do not see the lines, and for all if there are none. */
function Outcome({ entries, is_current, problem }: OutcomeProps) {
  const count = entries.length;
  const text = count === 0 ? 'Nothing matches.' : `${count} ${count === 1 ? 'result' : 'results'}`;
  return (
    <div role="status">
      {problem !== undefined && (
        <Text size="sm" c="dimmed" px="sm" pt="xs">
          {problem}
        </Text>
      )}
      {is_current && count === 0 && (
        <Text size="sm" c="dimmed" px="sm" py="md">
          {text}
        </Text>
      )}
      {is_current && count > 0 && <VisuallyHidden>{text}</VisuallyHidden>}
    </div>
  );
}
