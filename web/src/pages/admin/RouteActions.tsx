import { ActionIcon, Button, Group, Menu } from '@mantine/core';
import { EllipsisVerticalIcon } from '@heroicons/react/24/outline';
import type { AdminModel, AdminRoute } from '../../../../src/dashboard/views/admin.ts';
import type { Change } from './useChange.ts';

type Props = { model: AdminModel; route: AdminRoute; change: Change; test: () => void; drainLast: () => void };

/** Actions on one route of a model. */
export function RouteActions({ model, route, change, test, drainLast }: Props) {
  const ids = model.routes.map(({ id }) => id);
  const place = ids.indexOf(route.id);
  const move = (to: number) => {
    const routes = ids.filter((id) => id !== route.id).toSpliced(to, 0, route.id);
    change.make('models/order', { model: model.id, routes });
  };
  const drain = (drained: boolean) => change.make('routes/drain', { model: model.id, route: route.id, drained });
  const is_last = model.routes.every(({ id, is_drained }) => is_drained || id === route.id);
  return (
    <Group gap={4} wrap="nowrap" justify="flex-end">
      <Button size="xs" variant="default" onClick={test} aria-label={`Test ${route.name}`}>
        Test
      </Button>
      <Menu position="bottom-end" width={230}>
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" size="md" aria-label={`More for ${route.name}`}>
            <EllipsisVerticalIcon width={20} aria-hidden />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {route.state === 'open' && (
            <Menu.Item onClick={() => change.make('routes/reset', { route: route.name })}>Use it again now</Menu.Item>
          )}
          <Menu.Item onClick={() => (is_last && !route.is_drained ? drainLast() : drain(!route.is_drained))}>
            {route.is_drained ? 'End the drain' : 'Drain: no new work'}
          </Menu.Item>
          {ids.length > 1 && (
            <>
              <Menu.Item disabled={place === 0} onClick={() => move(place - 1)}>
                Move up
              </Menu.Item>
              <Menu.Item disabled={place === ids.length - 1} onClick={() => move(place + 1)}>
                Move down
              </Menu.Item>
              {model.is_reordered && (
                <Menu.Item onClick={() => change.make('models/order', { model: model.id, routes: [] })}>
                  Restore the configured order
                </Menu.Item>
              )}
            </>
          )}
        </Menu.Dropdown>
      </Menu>
    </Group>
  );
}
