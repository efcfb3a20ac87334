/** What a policy keeps from consultation to consultation; `{}`, with the schema's defaults, at first. */
export interface Kept<Value = unknown> {
  /** As it stands, with what this consultation has changed. It goes back with the verdict: without one, nothing was changed. */
  readonly value: Value
  /**
   * Makes a new value of the old one, and hands it back. The host checks it against the schema of the manifest, and one that
   * does not fit is the policy's failure.
   *
   * @param change answers at once.
   * @throws TypeError `KEPT_VALUE` for what is no JSON or longer than 64 KiB; `KEPT_LATE` after the handler has answered.
   */
  update(change: (value: Value) => Value): Value
}
