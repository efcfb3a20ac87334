export {
  CAPABILITIES,
  type Capability,
  errorLine,
  FAULT,
  type Id,
  isTooLong,
  MAX_KEPT_LENGTH,
  MAX_LINE_BYTES,
  MAX_MESSAGE_DEPTH,
  notificationLine,
  PROTOCOL,
  requestLine,
  resultLine,
  type WireError,
} from './wire/frames.ts'
export { LineReader, type LineReaderOptions } from './wire/lines.ts'
export { Outbox } from './wire/outbox.ts'
