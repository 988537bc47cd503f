export type HuaweiCredentials = {
  /** Also the id of the OAuth client. */
  appId: string
  secret: string
  projectId?: string | undefined
  /** By which a tap finds the SDK in the app; without it a tap opens the app, or the address of the message. */
  packageName?: string | undefined
  /** Huawei shows nothing without a title. */
  defaultTitle: string
}
