import { Button, Checkbox, Menu, Popover, Stack } from '@mantine/core';
import { ArrowDownTrayIcon, PauseIcon, PlayIcon, ViewColumnsIcon } from '@heroicons/react/24/outline';
import { below } from '../../below.ts';
import { queryOf } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { exportColumns } from './chosen-columns.ts';
import { columns, offered, type ColumnName } from './columns.tsx';
import { chosenLabels, filterOf, labelsOf, momentsOf } from './filters.ts';
import { SavedViews } from './SavedViews.tsx';
import type { ActivitySearch, ActivityTab } from './search.ts';

type Props = {
  tab: ActivityTab;
  search: ActivitySearch;
  chosen: readonly ColumnName[];
  choose: (names: string[]) => void;
  is_live: boolean;
  setIsLive: (is_live: boolean) => void;
};

/** Actions on a list: hold it still, save it, choose its columns, take it along. */
export function ListActions({ tab, search, chosen, choose, is_live, setIsLive }: Props) {
  const Icon = is_live ? PauseIcon : PlayIcon;
  return (
    <>
      <Button
        variant={is_live ? 'light' : 'default'}
        size="xs"
        aria-pressed={is_live}
        leftSection={<Icon width={16} aria-hidden />}
        onClick={() => setIsLive(!is_live)}
      >
        Live rows
      </Button>
      <SavedViews />
      <ColumnChoice tab={tab} chosen={chosen} choose={choose} />
      <Downloads tab={tab} search={search} chosen={chosen} />
    </>
  );
}

function ColumnChoice({ tab, chosen, choose }: Pick<Props, 'tab' | 'chosen' | 'choose'>) {
  const { names, fixed } = offered[tab];
  return (
    <Popover position="bottom-end" trapFocus withinPortal>
      <Popover.Target>
        <Button variant="default" size="xs" leftSection={<ViewColumnsIcon width={16} aria-hidden />}>
          Columns
        </Button>
      </Popover.Target>
      <Popover.Dropdown mah="45vh" style={{ overflowY: 'auto' }}>
        <Checkbox.Group value={[...chosen]} onChange={choose} aria-label="Columns">
          <Stack gap="xs">
            {names.map((name) => (
              <Checkbox key={name} value={name} label={columns[name].name} disabled={name === fixed} />
            ))}
          </Stack>
        </Checkbox.Group>
      </Popover.Dropdown>
    </Popover>
  );
}

function Downloads({ tab, search, chosen }: Pick<Props, 'tab' | 'search' | 'chosen'>) {
  const { base, may } = usePlace();
  const query = queryOf({ ...filterOf(tab, search), columns: exportColumns(chosen) });
  const { model, key, outcome, q, project } = search;
  // The file of contents has no other filters.
  const has_contents = q === undefined && chosenLabels(search, labelsOf(tab)).length === 0;
  const contents = queryOf({ model, key, outcome, project, ...momentsOf(search) });
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default" size="xs" leftSection={<ArrowDownTrayIcon width={16} aria-hidden />}>
          Download
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {(['csv', 'jsonl'] as const).map((form) => (
          <Menu.Item key={form} component="a" href={below(`${base}/activity.${form}${query}`)} download>
            {form.toUpperCase()}
          </Menu.Item>
        ))}
        {tab === 'chats' && has_contents && may('content') && (
          <Menu.Item component="a" href={below(`${base}/contents.jsonl${contents}`)} download>
            Contents as JSONL
          </Menu.Item>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}
