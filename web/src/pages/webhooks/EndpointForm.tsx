import {
  Alert,
  Button,
  Checkbox,
  Group,
  Input,
  MultiSelect,
  Stack,
  Switch,
  Text,
  Textarea,
  TextInput,
} from '@mantine/core';
import { EyeIcon } from '@heroicons/react/24/outline';
import { useForm } from '@mantine/form';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import type { EndpointsView, EndpointView, NewEndpointView } from '../../../../src/dashboard/views/webhooks.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { changesIn } from '../../ui/changes.ts';
import { CodeBox } from '../../ui/Copy.tsx';
import { searchOf } from '../../ui/Filters.tsx';
import { FormEnd } from '../../ui/FormEnd.tsx';
import { useKeyChoices } from '../../ui/key-choices.ts';
import { Modal } from '../../ui/Modal.tsx';
import { isSecretComing, shown_once } from '../../ui/shown-once.ts';
import { useChoices } from '../activity/filters.ts';
import { endpointName } from './endpoints-query.ts';

type Values = {
  url: string;
  description: string;
  events: string[];
  models: string[];
  keys: string[];
  projects: string[];
  /** A line for each pair: name=value. */
  metadata: string;
  enabled: boolean;
};

const fresh: Values = {
  url: '',
  description: '',
  events: ['task.*'],
  models: [],
  keys: [],
  projects: [],
  metadata: '',
  enabled: true,
};

function toBody({ models, keys, projects, metadata, ...others }: Values) {
  const pairs = metadata
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line): [string, string] => {
      const equals = line.indexOf('=');
      return equals === -1 ? [line.trim(), ''] : [line.slice(0, equals).trim(), line.slice(equals + 1).trim()];
    });
  return { ...others, filters: { models, keys, projects, metadata: Object.fromEntries(pairs) } };
}

/** Returns what was changed; of the filters, which are replaced together, the others as they are now. */
function toChange(before: Values, after: Values, { filters: latest }: EndpointView) {
  const { filters: filters_before, ...fields_before } = toBody(before);
  const { filters, ...fields } = toBody(after);
  const changes = changesIn(filters_before, filters);
  const has_changes = Object.keys(changes).length > 0;
  return { ...changesIn(fields_before, fields), ...(has_changes && { filters: { ...latest, ...changes } }) };
}

function valuesOf({ url, description, events, filters, enabled }: EndpointView): Values {
  const { models, keys, projects, metadata } = filters;
  const lines = Object.entries(metadata).map(([name, value]) => `${name}=${String(value)}`);
  const lists = { models: [...models], keys: [...keys], projects: [...projects] };
  return { url, description, events, ...lists, metadata: lines.join('\n'), enabled };
}

/** Asks for an address and its events, then shows the secret, once. */
export function CreateEndpoint({ opened, close, view }: { opened: boolean; close: () => void; view: EndpointsView }) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const { mutate, data, error, isPending, reset } = useMutation({
    mutationFn: (values: Values) => api.post<NewEndpointView>(`${base}/webhooks/endpoints`, toBody(values)),
    onSuccess: () => queries.invalidateQueries({ queryKey: [account.id, 'webhook-endpoints'] }),
    ...shown_once,
  });
  const end = () => {
    if (isSecretComing(queries)) return;
    close();
    reset();
  };
  if (data) return <NewSecret opened={opened} created={data} close={end} />;
  return (
    <Modal opened={opened} onClose={end} title="Add an endpoint" size="lg">
      <Fields view={view} values={fresh} submit={mutate} error={error} isPending={isPending} word="Add" end={end} />
    </Modal>
  );
}

export function ChangeEndpoint(props: { endpoint: EndpointView; view: EndpointsView; close: () => void }) {
  const { endpoint, view, close } = props;
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const [before] = useState(() => valuesOf(endpoint));
  const { mutate, error, isPending } = useMutation({
    mutationFn: (values: Values) => {
      const latest = view.data.find(({ id }) => id === endpoint.id) ?? endpoint;
      return api.patch(`${base}/webhooks/endpoints/${endpoint.id}`, toChange(before, values, latest));
    },
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: [account.id, 'webhook-endpoints'] });
      close();
    },
  });
  return (
    <Modal opened onClose={close} title={`Change ${endpointName(endpoint)}`} size="lg">
      <Fields view={view} values={before} submit={mutate} error={error} isPending={isPending} word="Save" end={close} />
    </Modal>
  );
}

/** The secret, shown once. Nothing shows it again when this is closed. */
export function NewSecret({
  opened,
  created,
  close,
}: {
  opened: boolean;
  created: NewEndpointView;
  close: () => void;
}) {
  return (
    <Modal
      opened={opened}
      onClose={close}
      title={`The secret of ${endpointName(created.endpoint)}`}
      size="lg"
      shows_once
    >
      <Stack>
        <Alert variant="light" icon={<EyeIcon aria-hidden />} title="Copy it now">
          It is shown only once. Everything that this endpoint receives is signed with it.
        </Alert>
        <CodeBox text={created.secret} label="secret" />
        <Text size="sm">“Secret and test” on this page has code that verifies what you receive.</Text>
        <Group justify="flex-end">
          <Button onClick={close}>I have copied it</Button>
        </Group>
      </Stack>
    </Modal>
  );
}

type FieldsProps = {
  view: EndpointsView;
  values: Values;
  submit: (values: Values) => void;
  error: Error | null;
  isPending: boolean;
  word: string;
  end: () => void;
};

function Fields({ view, values, submit, error, isPending, word, end }: FieldsProps) {
  const { models, projects } = useChoices();
  const form = useForm({
    initialValues: values,
    validate: { events: (events) => (events.length === 0 ? 'Choose at least one event.' : null) },
  });
  const keys = useKeyChoices(form.values.keys);
  const asksForTasks = form.values.events.some((event) => event === '*' || event.startsWith('task.'));
  return (
    <form onSubmit={form.onSubmit(submit)}>
      <Stack>
        <TextInput
          label="Address"
          description="Receives a signed POST for each event. Answer 2xx within 10 seconds."
          placeholder="https://example.com/medley"
          type="url"
          required
          maxLength={2_048}
          autoComplete="off"
          data-autofocus
          {...form.getInputProps('url')}
        />
        <TextInput
          label="Description"
          description="A name for your team. May be empty."
          maxLength={200}
          autoComplete="off"
          {...form.getInputProps('description')}
        />
        <Events
          view={view}
          value={form.values.events}
          onChange={(events) => form.setFieldValue('events', events)}
          error={form.errors['events']}
        />
        {asksForTasks && (
          <Stack gap="sm" component="fieldset" style={{ border: 0, margin: 0, padding: 0 }}>
            <Text size="sm" fw={500} component="legend" mb={4}>
              Only tasks that fit (empty: all)
            </Text>
            <MultiSelect label="Models" searchable clearable data={models} {...form.getInputProps('models')} />
            <MultiSelect
              label="Keys"
              searchable
              clearable
              data={keys.data}
              {...searchOf(keys)}
              {...form.getInputProps('keys')}
            />
            {(projects.length > 1 || values.projects.length > 0) && (
              <MultiSelect label="Projects" searchable clearable data={projects} {...form.getInputProps('projects')} />
            )}
            <Textarea
              label="Metadata"
              description="A pair per line, such as team=web. A task must have all of them."
              autosize
              minRows={1}
              maxRows={6}
              autoComplete="off"
              spellCheck={false}
              {...form.getInputProps('metadata')}
            />
          </Stack>
        )}
        <Switch label="Enabled" {...form.getInputProps('enabled', { type: 'checkbox' })} />
        <FormEnd word={word} isPending={isPending} error={error} cancel={end} />
      </Stack>
    </form>
  );
}

type EventsProps = {
  view: EndpointsView;
  value: string[];
  onChange: (events: string[]) => void;
  error: ReactNode;
};

/** A checkbox for all of a kind, and one for each event that it does not have already. */
function Events({ view, value, onChange, error }: EventsProps) {
  const has_all = value.includes('*');
  const toggle = (event: string, is_on: boolean) => {
    const others = value.filter((each) => each !== event);
    onChange(is_on ? [...others, event] : others);
  };
  return (
    <Input.Wrapper label="Events" labelElement="div" error={error}>
      <Stack gap="xs" mt={6}>
        <Checkbox
          label="All events, also those of later versions"
          checked={has_all}
          onChange={({ currentTarget }) => toggle('*', currentTarget.checked)}
        />
        {!has_all &&
          view.kinds.map((kind) => {
            const all = `${kind}.*`;
            const of_kind = view.events.filter(({ type }) => type.startsWith(`${kind}.`));
            return (
              <Stack key={kind} gap={6}>
                <Checkbox
                  label={all}
                  checked={value.includes(all)}
                  onChange={({ currentTarget }) => toggle(all, currentTarget.checked)}
                />
                {!value.includes(all) &&
                  of_kind.map(({ type, meaning }) => (
                    <Checkbox
                      key={type}
                      ml="xl"
                      label={type}
                      description={meaning}
                      checked={value.includes(type)}
                      onChange={({ currentTarget }) => toggle(type, currentTarget.checked)}
                    />
                  ))}
              </Stack>
            );
          })}
      </Stack>
    </Input.Wrapper>
  );
}
