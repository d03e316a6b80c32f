import { Autocomplete, Checkbox, Group, NumberInput, Stack, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { AlertSettingsView, AlertsView, QuietHoursView } from '../../../../src/dashboard/views/alerts.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { fieldErrors, type FieldErrors } from '../../ui/field-error.ts';
import { MayButton, useDenial } from '../../ui/MayButton.tsx';
import { Card } from '../../ui/Page.tsx';
import { Failed } from '../../ui/states.tsx';
import { Saved } from '../../ui/Saved.tsx';
import { role_choices } from './roles.ts';

/** A night in the time zone of this browser. */
function usualNight(): QuietHoursView {
  return { from: '22:00', to: '07:00', time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone };
}

const usual_percent = 20;

const time_zones = ['UTC', ...Intl.supportedValuesOf('timeZone').filter((name) => name !== 'UTC')];

type Props = {
  settings: AlertSettingsView;
  change: (change: Partial<AlertSettingsView>) => void;
  is_locked: boolean;
  problem: FieldErrors;
};

const labels = {
  error_percent: 'The share',
  roles: 'Roles',
  webhook_url: 'The webhook',
  per_hour_max: 'Messages per hour',
  'quiet_hours.from': 'From',
  'quiet_hours.to': 'To',
  'quiet_hours.time_zone': 'The time zone',
};

/** Chooses the alerts, and who hears of them when. */
export function AlertForm({ view }: { view: AlertsView }) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const is_locked = useDenial('webhooks') !== undefined;
  const [settings, setSettings] = useState(view.settings);
  const save = useMutation({
    mutationFn: () => api.put<AlertsView>(`${base}/alerts`, settings),
    onSuccess: (saved) => {
      queries.setQueryData([account.id, 'alerts'], saved);
      setSettings(saved.settings);
    },
  });
  const change: Props['change'] = (changed) => {
    save.reset(); // what was saved is another one now
    setSettings((now) => ({ ...now, ...changed }));
  };
  const problem = fieldErrors(save.error, labels);
  const parts = { settings, change, is_locked, problem };
  return (
    <Card title="What to send, and where">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!is_locked && !save.isPending) save.mutate();
        }}
      >
        <Stack gap="md">
          <Kinds {...parts} />
          <Recipients {...parts} />
          <Quiet {...parts} />
          {problem.other && <Failed error={problem.other} />}
          <Group>
            <MayButton right="webhooks" type="submit" loading={save.isPending}>
              Save
            </MayButton>
            <Saved is_saved={save.isSuccess} />
          </Group>
        </Stack>
      </form>
    </Card>
  );
}

function Kinds({ settings, change, is_locked, problem }: Props) {
  const { key_limit, webhooks_failing, error_percent } = settings;
  return (
    <Stack gap="xs">
      <Checkbox
        label="A key has used 80 % of its limit, or all of it"
        checked={key_limit}
        disabled={is_locked}
        onChange={({ currentTarget }) => change({ key_limit: currentTarget.checked })}
      />
      <Checkbox
        label="Webhooks cannot be delivered"
        checked={webhooks_failing}
        disabled={is_locked}
        onChange={({ currentTarget }) => change({ webhooks_failing: currentTarget.checked })}
      />
      <Checkbox
        label="Many calls fail, by no fault of their callers"
        checked={error_percent !== null}
        disabled={is_locked}
        onChange={({ currentTarget }) => change({ error_percent: currentTarget.checked ? usual_percent : null })}
      />
      {error_percent !== null && (
        <NumberInput
          label="From this share on, in percent"
          description="Of at least 20 calls in 15 minutes."
          min={1}
          max={100}
          allowDecimal={false}
          value={error_percent}
          disabled={is_locked}
          onChange={(value) => change({ error_percent: Number(value) })}
          error={problem.of('error_percent')}
          w={260}
        />
      )}
    </Stack>
  );
}

function Recipients({ settings: { roles, webhook_url, per_hour_max }, change, is_locked, problem }: Props) {
  return (
    <Stack gap="sm">
      <Checkbox.Group
        label="Mail to members with these roles"
        description="At the addresses that they have proved."
        value={[...roles]}
        error={problem.of('roles')}
        onChange={(values) =>
          change({ roles: role_choices.map(({ value }) => value).filter((role) => values.includes(role)) })
        }
      >
        <Group mt="xs">
          {role_choices.map(({ value, label }) => (
            <Checkbox key={value} value={value} label={label} disabled={is_locked} />
          ))}
        </Group>
      </Checkbox.Group>
      <TextInput
        label="Webhook"
        description="Gets each alert, signed with the secret of this account's webhooks. Empty for none."
        placeholder="https://example.com/alerts"
        type="url"
        value={webhook_url ?? ''}
        readOnly={is_locked}
        onChange={({ currentTarget }) => change({ webhook_url: currentTarget.value.trim() || null })}
        error={problem.of('webhook_url')}
        maw={520}
      />
      <NumberInput
        label="Messages per hour"
        description="By mail and by webhook each. The others wait."
        min={1}
        max={100}
        allowDecimal={false}
        value={per_hour_max}
        disabled={is_locked}
        onChange={(value) => change({ per_hour_max: Number(value) })}
        error={problem.of('per_hour_max')}
        w={260}
      />
    </Stack>
  );
}

function Quiet({ settings: { quiet_hours }, change, is_locked, problem }: Props) {
  const set = (changed: Partial<QuietHoursView>) =>
    quiet_hours && change({ quiet_hours: { ...quiet_hours, ...changed } });
  return (
    <Stack gap="xs">
      <Checkbox
        label="Quiet hours: only what is critical is sent"
        checked={quiet_hours !== null}
        disabled={is_locked}
        onChange={({ currentTarget }) => change({ quiet_hours: currentTarget.checked ? usualNight() : null })}
      />
      {quiet_hours && (
        <Group align="flex-end" gap="sm">
          <TextInput
            label="From"
            type="time"
            value={quiet_hours.from}
            readOnly={is_locked}
            onChange={({ currentTarget }) => set({ from: currentTarget.value })}
            error={problem.of('quiet_hours.from')}
          />
          <TextInput
            label="To"
            type="time"
            value={quiet_hours.to}
            readOnly={is_locked}
            onChange={({ currentTarget }) => set({ to: currentTarget.value })}
            error={problem.of('quiet_hours.to')}
          />
          <Autocomplete
            label="Time zone"
            data={time_zones}
            limit={20}
            value={quiet_hours.time_zone}
            readOnly={is_locked}
            onChange={(value) => set({ time_zone: value.trim() })}
            error={problem.of('quiet_hours.time_zone')}
            w={220}
          />
        </Group>
      )}
    </Stack>
  );
}
