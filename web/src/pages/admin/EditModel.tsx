import { Radio, Stack, Text, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type {
  AddedModelView,
  AddedProviderView,
  AdminProviders,
} from '../../../../src/dashboard/views/admin-providers.ts';
import { api } from '../../api.ts';
import { FormEnd } from '../../ui/FormEnd.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { priceTexts } from '../../ui/price.ts';
import { fieldError, otherError } from '../../ui/field-error.ts';
import { typedPrice, typedUnits, type Amounts } from './provider-prices.ts';

type Props = { view: AdminProviders; provider: AddedProviderView; model: AddedModelView; close: () => void };

type Values = { basis: string; margin: string; amounts: Amounts; list_amounts: Amounts };

function usePricing(props: Props) {
  const { provider, model, close } = props;
  const queries = useQueryClient();
  const { id, kind, margin, has_own_price, price, list_price } = model;
  const may_type_list = mayTypeListPrice(props);
  const form = useForm<Values>({
    initialValues: {
      basis: has_own_price ? 'typed' : margin === null ? 'provider' : 'margin',
      margin: margin ?? provider.margin,
      amounts: amountsOf(kind, price),
      list_amounts: amountsOf(kind, list_price),
    },
    validate: {
      amounts: (typed, { basis }) =>
        basis === 'typed' && !typedPrice(kind, typed) ? 'Enter amounts such as 0.25; 0 makes it free.' : null,
      list_amounts: (typed) =>
        may_type_list && isTyped(typed) && !typedPrice(kind, typed)
          ? 'Enter each amount, such as 0.25, or none.'
          : null,
    },
  });
  const mutation = useMutation({
    mutationFn: (values: Values) =>
      api.post(`/dash/admin/providers/${provider.name}/models/change`, {
        model: id,
        ...changeOf(values, kind, may_type_list),
      }),
    onSuccess: async () => {
      await queries.invalidateQueries();
      close();
    },
  });
  return { form, ...mutation };
}

/** Changes the price of a model: by the provider's margin, a margin of its own, or a price that is typed. */
export function EditModel(props: Props) {
  const { view, provider, model, close } = props;
  const { form, mutate, error, isPending } = usePricing(props);
  const units = typedUnits(model.kind);
  const may_type_list = mayTypeListPrice(props);
  const is_listed = may_type_list ? isTyped(form.values.list_amounts) : model.list_price.length > 0;
  const amounts_error = form.errors['amounts'] ?? fieldError(error, 'price');
  return (
    <Modal opened onClose={close} title={`Price of ${model.id}`} centered closeButtonProps={{ 'aria-label': 'Close' }}>
      <form onSubmit={form.onSubmit((values) => mutate(values))} noValidate>
        <Stack>
          <ListPrice model={model} may_type={may_type_list} />
          {may_type_list &&
            units.map(({ unit, label }) => (
              <TextInput
                key={unit}
                label={`Provider’s price: ${label}, in USD`}
                inputMode="decimal"
                autoComplete="off"
                {...form.getInputProps(`list_amounts.${unit}`)}
                error={form.errors['list_amounts'] ?? fieldError(error, 'list_price')}
              />
            ))}
          <Radio.Group label="Price for your callers" {...form.getInputProps('basis')}>
            <Stack gap="xs" mt="xs">
              <Radio
                value="provider"
                label={`List price + ${provider.margin} %, as the provider has it`}
                disabled={!is_listed}
              />
              <Radio value="margin" label="List price + a margin of its own" disabled={!is_listed} />
              {units.length > 0 && <Radio value="typed" label="A price that I type" />}
            </Stack>
          </Radio.Group>
          {form.values.basis === 'margin' && (
            <TextInput
              label="Margin in percent"
              inputMode="decimal"
              autoComplete="off"
              {...form.getInputProps('margin')}
              error={fieldError(error, 'margin')}
            />
          )}
          {form.values.basis === 'typed' &&
            units.map(({ unit, label }) => (
              <TextInput
                key={unit}
                label={`${label}, in ${view.currency}`}
                inputMode="decimal"
                autoComplete="off"
                {...form.getInputProps(`amounts.${unit}`)}
                error={amounts_error}
              />
            ))}
          <FormEnd
            word="Save"
            color="orange"
            isPending={isPending}
            error={otherError(error, ['margin', 'price', 'list_price'])}
            cancel={close}
          />
        </Stack>
      </form>
    </Modal>
  );
}

function ListPrice({ model: { list_price }, may_type }: Pick<Props, 'model'> & { may_type: boolean }) {
  const text = may_type
    ? 'Type what the provider asks, and margins on it are exact. Nothing here reads it from a list.'
    : list_price.length === 0
      ? 'The provider’s list has no price.'
      : `The provider’s list price: ${priceTexts(list_price).join(', ')}.`;
  return <Text size="sm">{text} New calls pay the new price at once; tasks keep the price of their creation.</Text>;
}

/** The provider's price is typed where no list says it and dollars have a rate. */
function mayTypeListPrice({ view, model }: Props): boolean {
  return model.may_type_list_price && view.usd_rate !== null && typedUnits(model.kind).length > 0;
}

function amountsOf(kind: string, rows: AddedModelView['price']): Amounts {
  return Object.fromEntries(
    typedUnits(kind).map(({ unit }) => [unit, rows.find((row) => row.unit === unit)?.amount ?? '']),
  );
}

function isTyped(amounts: Amounts): boolean {
  return Object.values(amounts).some((amount) => amount.trim() !== '');
}

function changeOf({ basis, margin, amounts, list_amounts }: Values, kind: string, may_type_list: boolean) {
  const list = may_type_list ? { list_price: typedPrice(kind, list_amounts) ?? null } : {};
  if (basis === 'typed') return { ...list, price: typedPrice(kind, amounts), margin: null };
  return { ...list, price: null, margin: basis === 'margin' ? margin : null };
}
