import { Checkbox, Group, Select, Stack, Switch, Text, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { BudgetsView, BudgetView } from '../../../../src/dashboard/views/budgets.ts';
import { api, Failure } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { changesIn } from '../../ui/changes.ts';
import { Confirm } from '../../ui/Confirm.tsx';
import { searchOf } from '../../ui/Filters.tsx';
import { FormEnd } from '../../ui/FormEnd.tsx';
import { useKeyChoices } from '../../ui/key-choices.ts';
import { Modal } from '../../ui/Modal.tsx';
import { alert_choices, period_choices, periodName, scope_choices, scopeText, subjectLabel } from './words.ts';

type Values = {
  name: string;
  scope: string;
  subject: string;
  period: string;
  amount: string;
  hard: boolean;
  alerts: string[];
};

const fields = ['name', 'scope', 'subject', 'period', 'amount'];

function toBody({ name, amount, hard, alerts }: Values) {
  return { name, amount, kind: hard ? 'hard' : 'soft', alert_percents: alerts.map(Number) };
}

/** Makes a budget, or changes one; its scope and its period stay. */
export function BudgetForm(props: { budget?: BudgetView; choices: BudgetsView['choices']; close: () => void }) {
  const { budget, choices, close } = props;
  const { account, base } = usePlace();
  const [before] = useState<Values>(() => ({
    name: budget?.name ?? '',
    scope: budget?.scope ?? 'account',
    subject: budget?.subject?.id ?? '',
    period: budget?.period ?? 'month',
    amount: budget?.amount.exact.replace(/(\.\d\d)(\d*?)0*$/, '$1$2') ?? '',
    hard: budget?.is_hard ?? false,
    alerts: (budget?.alert_percents ?? alert_choices).map(String),
  }));
  const form = useForm<Values>({ initialValues: before });
  const { mutate, error, isPending } = useChange(
    (values: Values) => {
      const { scope, subject, period } = values;
      if (budget) return api.patch(`${base}/budgets/${budget.id}`, changesIn(toBody(before), toBody(values)));
      return api.post(`${base}/budgets`, { ...toBody(values), scope, period, ...(scope !== 'account' && { subject }) });
    },
    close,
    (failure) => {
      if (failure instanceof Failure && failure.param !== undefined && fields.includes(failure.param))
        form.setFieldError(failure.param, failure.message);
    },
  );
  return (
    <Modal opened onClose={close} title={budget ? `Change ${budget.name}` : 'Create a budget'}>
      <form onSubmit={form.onSubmit((values) => mutate(values))}>
        <Stack>
          <TextInput
            label="Name"
            required
            maxLength={100}
            autoComplete="off"
            data-autofocus
            {...form.getInputProps('name')}
          />
          {budget ? (
            <Text size="sm">
              {scopeText(budget)}, {periodName(budget.period)}.
            </Text>
          ) : (
            <Scope form={form} choices={choices} />
          )}
          <TextInput
            label={`Amount in ${account.currency}`}
            required
            inputMode="decimal"
            autoComplete="off"
            maxLength={20}
            {...form.getInputProps('amount')}
          />
          <Switch
            label="Hard: refuse calls that it does not pay"
            description="Exact to the millionth, on all nodes. Calls of the account take a little longer to begin then. A soft budget refuses nothing."
            {...form.getInputProps('hard', { type: 'checkbox' })}
          />
          <Alerts form={form} />
          <FormEnd
            word={budget ? 'Save' : 'Create'}
            isPending={isPending}
            error={Object.keys(form.errors).length > 0 ? null : error}
            cancel={close}
          />
        </Stack>
      </form>
    </Modal>
  );
}

type Form = ReturnType<typeof useForm<Values>>;

/** Percentages at which people are notified. */
function Alerts({ form }: { form: Form }) {
  return (
    <Checkbox.Group
      label="Alerts"
      description="Percentages at which people are notified, by mail and webhook. None: nobody is notified."
      {...form.getInputProps('alerts')}
    >
      <Group mt="xs">
        {alert_choices.map((percent) => (
          <Checkbox key={percent} value={String(percent)} label={`${percent} %`} />
        ))}
      </Group>
    </Checkbox.Group>
  );
}

function Scope({ form, choices }: { form: Form; choices: BudgetsView['choices'] }) {
  const { scope } = form.values;
  const lists = { project: choices.projects, member: choices.members };
  const list = scope === 'project' || scope === 'member' ? lists[scope] : undefined;
  return (
    <>
      <Select
        label="For"
        data={[...scope_choices]}
        allowDeselect={false}
        {...form.getInputProps('scope')}
        onChange={(value) => form.setValues({ scope: value ?? 'account', subject: '' })}
      />
      {list && (
        <Select
          label={subjectLabel(scope)}
          {...(scope === 'member' && { description: 'Of the keys that this member made in the dashboard.' })}
          required
          searchable={list.length > 8}
          placeholder="Choose one"
          data={list.map(({ id, name }) => ({ value: id, label: name }))}
          {...form.getInputProps('subject')}
        />
      )}
      {scope === 'key' && <KeyField form={form} />}
      <Select label="Period" data={[...period_choices]} allowDeselect={false} {...form.getInputProps('period')} />
    </>
  );
}

function KeyField({ form }: { form: Form }) {
  const { subject } = form.values;
  const keys = useKeyChoices(subject === '' ? [] : [subject], 'active');
  return (
    <Select
      label={subjectLabel('key')}
      required
      searchable
      placeholder="Choose one"
      data={keys.data}
      {...searchOf(keys)}
      {...form.getInputProps('subject')}
    />
  );
}

/** Asks before a limit is gone. */
export function RemoveBudget({ budget, close }: { budget: BudgetView; close: () => void }) {
  const { base } = usePlace();
  const { mutate, error, isPending } = useChange(() => api.delete(`${base}/budgets/${budget.id}`), close);
  return (
    <Confirm
      title={`Remove ${budget.name}`}
      word="Remove"
      color="red.9"
      isPending={isPending}
      error={error}
      confirm={mutate}
      close={close}
    >
      <Text size="sm">
        {budget.is_hard ? 'Calls are no longer refused by it.' : 'No more alerts about its spending.'} What was spent
        stays in usage.
      </Text>
    </Confirm>
  );
}

function useChange<V>(change: (values: V) => Promise<unknown>, close: () => void, failed?: (error: Error) => void) {
  const { account } = usePlace();
  const queries = useQueryClient();
  return useMutation<unknown, Error, V>({
    mutationFn: change,
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: [account.id, 'budgets'] });
      close();
    },
    ...(failed && { onError: failed }),
  });
}
