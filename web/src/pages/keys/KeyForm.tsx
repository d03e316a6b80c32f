import { Chip, Group, Input, NumberInput, Select, Stack, TagsInput, Textarea, TextInput } from '@mantine/core';
import { useForm, type UseFormReturnType } from '@mantine/form';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { KeyView, NewKeyView } from '../../../../src/dashboard/views/keys.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { optionalAmount } from '../../ui/amount.ts';
import { minute_form } from '../../ui/dates.ts';
import { fieldErrors, type FieldErrors } from '../../ui/field-error.ts';
import { changesIn } from '../../ui/changes.ts';
import { FormEnd } from '../../ui/FormEnd.tsx';
import { key_ends, MonthlyLimit, never } from '../../ui/KeyFields.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { useChoices } from '../activity/filters.ts';
import { ContentFields, contentRules, contentValues, type ContentValues } from './ContentFields.tsx';
import { NewKey } from './NewKey.tsx';
import { projectChoices, renewKeys, useProjects } from './projects.ts';

type Values = {
  name: string;
  project: string;
  limit: string;
  ends: string;
  scopes: string[];
  addresses: string;
  models: string[];
  per_minute: number | '';
} & ContentValues;

const all_scopes = ['chat', 'media', 'read'];

/** Without a limit there is none; `ends` is a time, a duration from now, or never. */
function toBody({ name, project, limit, ends, scopes, addresses, models, per_minute, ...content }: Values) {
  return {
    name,
    project,
    limit: optionalAmount(limit),
    expires_at: ends === never ? null : ends,
    scopes: scopes.length === all_scopes.length ? null : scopes,
    addresses: addresses.split(/[\s,]+/).filter((range) => range !== ''),
    models,
    requests_per_minute: per_minute === '' ? null : per_minute,
    log_content: contentRules(content),
  };
}

/** Returns the changes. An expiry that is over or a project that is archived is not among them: no key can get such a one. */
function toChange(values: Values, values_before: Values) {
  const changes = changesIn(toBody(values_before), toBody(values));
  return { ...changes, ...(values.deletes_content && { delete_content: true }) };
}

/** Asks for a name and a limit, then tells the key, once. */
type CreateProps = { opened: boolean; project: string; close: () => void; days_max: number };

export function CreateKey({ opened, project, close, days_max }: CreateProps) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const { mutate, data, error, isPending, reset } = useMutation({
    mutationFn: (values: Values) => api.post<NewKeyView>(`${base}/keys`, toBody(values)),
    onSuccess: () => renewKeys(queries, account.id),
    gcTime: 0, // the answer has the key in it
  });
  const end = () => {
    if (isPending) return; // the answer is the only copy of the key
    close();
    reset();
  };
  if (data) return <NewKey opened={opened} created={data} close={end} />;
  return (
    <Modal opened={opened} onClose={end} title="Create a key">
      <Fields
        kind="program"
        values={{
          name: '',
          project,
          limit: '',
          ends: never,
          scopes: all_scopes,
          addresses: '',
          models: [],
          per_minute: '',
          ...contentValues(null),
        }}
        days_max={days_max}
        submit={mutate}
        error={error}
        pending={isPending}
        word="Create"
        end={end}
      />
    </Modal>
  );
}

export function ChangeKey({ apiKey, close, days_max }: { apiKey: KeyView; close: () => void; days_max: number }) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const limit = apiKey.limit?.exact.replace(/(\.\d\d)(\d*?)0*$/, '$1$2') ?? '';
  const [values_before] = useState<Values>({
    name: apiKey.name,
    project: apiKey.project.id,
    limit,
    ends: apiKey.expires_at ?? never,
    scopes: apiKey.scopes ?? all_scopes,
    addresses: apiKey.addresses?.join('\n') ?? '',
    models: apiKey.models ?? [],
    per_minute: apiKey.requests_per_minute ?? '',
    ...contentValues(apiKey.log_content),
  });
  const { mutate, error, isPending } = useMutation({
    mutationFn: (values: Values) => api.patch(`${base}/keys/${apiKey.id}`, toChange(values, values_before)),
    onSuccess: async () => {
      await renewKeys(queries, account.id);
      close();
    },
  });
  return (
    <Modal opened onClose={close} title={`Change ${apiKey.name}`}>
      <Fields
        kind={apiKey.kind}
        stays={apiKey.is_limited}
        values={values_before}
        days_max={days_max}
        submit={mutate}
        error={error}
        pending={isPending}
        word="Save"
        end={close}
      />
    </Modal>
  );
}

const labels = {
  name: 'Name',
  limit: 'The monthly limit',
  expires_at: 'The expiry',
  scopes: 'What it may be used for',
  addresses: 'Allowed addresses',
  models: 'Allowed models',
  requests_per_minute: 'The requests per minute',
};

function Fields(props: {
  kind: KeyView['kind'];
  /** It is limited to its project. */
  stays?: boolean;
  values: Values;
  days_max: number;
  submit: (values: Values) => void;
  error: Error | null;
  pending: boolean;
  word: string;
  end: () => void;
}) {
  const { account } = usePlace();
  const form = useForm({ mode: 'uncontrolled', initialValues: props.values });
  const errors = fieldErrors(props.error, labels);
  return (
    <form onSubmit={form.onSubmit(props.submit)}>
      <Stack>
        <TextInput
          label="Name"
          description="Where it is used, for example. Names appear in usage and activity."
          required
          maxLength={100}
          autoComplete="off"
          data-autofocus
          {...form.getInputProps('name')}
          error={errors.of('name')}
        />
        <ProjectField form={form} stays={props.stays ?? false} />
        <MonthlyLimit currency={account.currency} {...form.getInputProps('limit')} error={errors.of('limit')} />
        {props.kind === 'program' && (
          <>
            <UseFields form={form} errors={errors} />
            <RuleFields
              form={form}
              ends={props.values.ends}
              errors={errors}
              is_limited={account.is_limited || (props.stays ?? false)}
            />
          </>
        )}
        <ContentFields form={form} had_content={props.values.logs_content} days_max={props.days_max} />
        <FormEnd word={props.word} isPending={props.pending} error={errors.other} cancel={props.end} />
      </Stack>
    </form>
  );
}

/** Not shown while there is only one project. */
function ProjectField({ form, stays }: { form: UseFormReturnType<Values>; stays: boolean }) {
  const choices = projectChoices(useProjects().data);
  if (choices.length < 2) return null;
  return (
    <Select
      label="Project"
      description={
        stays
          ? 'The key is limited to it, and stays there. For another project, make a new key.'
          : 'What the key spends from now on belongs to it. Whoever is limited to it sees the earlier calls of the key, too.'
      }
      disabled={stays}
      data={choices}
      allowDeselect={false}
      searchable={choices.length > 8}
      key={form.key('project')}
      {...form.getInputProps('project')}
    />
  );
}

/** Allowed models and requests per minute. Ids can be chosen, and beginnings that several of them have; an alias is typed. */
function UseFields({ form, errors }: { form: UseFormReturnType<Values>; errors: FieldErrors }) {
  const { models } = useChoices();
  const ids = models.map(({ value }) => value);
  const beginnings = ids.filter((id) => id.includes('/')).map((id) => `${id.slice(0, id.indexOf('/'))}/*`);
  const shared = beginnings.filter((each, index) => beginnings.indexOf(each) < index);
  return (
    <>
      <TagsInput
        label="Allowed models"
        description="Ids, aliases, or beginnings such as acme/* for all models of acme, those of later too. Empty: all models."
        placeholder="Add a model"
        data={[...new Set(shared), ...ids]}
        maxTags={100}
        splitChars={[',', ' ']}
        clearable
        key={form.key('models')}
        {...form.getInputProps('models')}
        error={errors.of('models')}
      />
      <NumberInput
        label="Requests per minute"
        description="Of each kind: generate, chat, everything else. Empty: the limits of the service alone."
        placeholder="No limit of its own"
        min={1}
        allowDecimal={false}
        allowNegative={false}
        key={form.key('per_minute')}
        {...form.getInputProps('per_minute')}
        error={errors.of('requests_per_minute')}
      />
    </>
  );
}

/** Until when, for what and from where a key may be used. */
function RuleFields({
  form,
  ends,
  errors,
  is_limited,
}: {
  form: UseFormReturnType<Values>;
  ends: string;
  errors: FieldErrors;
  is_limited: boolean;
}) {
  const current = ends === never ? [] : [{ value: ends, label: minute_form.format(new Date(ends)) }];
  return (
    <>
      <Select
        label="Expires"
        description="After that it is refused like a deleted key."
        data={[...current, ...key_ends]}
        allowDeselect={false}
        key={form.key('ends')}
        {...form.getInputProps('ends')}
        error={errors.of('expires_at')}
      />
      <Input.Wrapper
        label="May be used for"
        description={
          is_limited
            ? 'Read: usage, speed, tasks and calls of its project, not the balance. Models can be listed with every key.'
            : 'Read: balance, usage, tasks and calls. Models can be listed with every key.'
        }
        error={errors.of('scopes')}
        labelElement="div"
      >
        <Chip.Group multiple key={form.key('scopes')} {...form.getInputProps('scopes')}>
          <Group gap="xs" mt={6}>
            <Chip value="chat">Chat</Chip>
            <Chip value="media">Media</Chip>
            <Chip value="read">Read</Chip>
          </Group>
        </Chip.Group>
      </Input.Wrapper>
      <Textarea
        label="Allowed addresses"
        description="One address or range per line, such as 203.0.113.0/24. Empty: any address."
        placeholder="Any address"
        autosize
        minRows={1}
        maxRows={6}
        autoComplete="off"
        spellCheck={false}
        key={form.key('addresses')}
        {...form.getInputProps('addresses')}
        error={errors.of('addresses')}
      />
    </>
  );
}
