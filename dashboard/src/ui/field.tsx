import type { ComponentChildren } from 'preact';
import './field.css';

/** Attributes that connect a control with its label, help and errors. */
export interface ControlAttributes {
  readonly id: string;
  readonly 'aria-describedby': string;
  readonly 'aria-invalid': boolean;
}

interface FieldProps {
  /** Element id, unique on the page. */
  readonly id: string;
  readonly label: string;
  /** Path in the configuration, if it differs from the label. */
  readonly code?: string;
  readonly unit?: string | undefined;
  readonly help?: ComponentChildren;
  readonly errors?: readonly string[];
  /** Whether the value differs from when the form was opened. */
  readonly isChanged?: boolean;
  /** Whether it consists of several labelled controls. */
  readonly isGroup?: boolean;
  readonly children: (attributes: ControlAttributes) => ComponentChildren;
}

export function Field(props: FieldProps) {
  const { id, label, code, unit, help, errors = [], isChanged = false, isGroup = false } = props;
  const attributes = {
    id,
    'aria-describedby': `${id}-help ${id}-errors`,
    'aria-invalid': errors.length > 0,
  };
  const Box = isGroup ? 'fieldset' : 'div';
  const described = isGroup ? { 'aria-describedby': attributes['aria-describedby'] } : {};
  return (
    <Box class={isChanged ? 'field changed' : 'field'} {...described}>
      {isGroup ? <legend>{label}</legend> : <label for={id}>{label}</label>}
      {code !== undefined && <code class="path">{code}</code>}
      <div class={unit === undefined ? 'control' : 'control with-unit'}>
        {props.children(attributes)}
        {unit !== undefined && <span class="unit">{unit}</span>}
      </div>
      <p class="help" id={`${id}-help`}>
        {isChanged && <span class="visually-hidden">Changed. </span>}
        {help}
      </p>
      <div class="errors" id={`${id}-errors`}>
        {errors.map((error) => (
          <p key={error}>{error}</p>
        ))}
      </div>
    </Box>
  );
}
