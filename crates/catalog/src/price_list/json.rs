//! A price list as JSON: products first, then the prices of each.

use std::{collections::HashMap, fmt, io::Read as Input};

use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor},
};

use super::{
    DamagedList, Read,
    row::{Of, Product, Row},
};

/// Reads a list; what was read before an error stays.
pub(super) fn read(input: impl Input, read: &mut Read) -> Result<(), DamagedList> {
    let mut products = HashMap::new();
    let mut from = serde_json::Deserializer::from_reader(input);
    let top = Top { read, products: &mut products };
    top.deserialize(&mut from)?;
    Ok(from.end()?)
}

/// The products that are used, by their number.
type Products = HashMap<String, (String, Of)>;

struct Top<'a> {
    read: &'a mut Read,
    products: &'a mut Products,
}

impl<'de> DeserializeSeed<'de> for Top<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Top<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a price list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "offerCode" => self.read.offer = Some(map.next_value()?),
                "publicationDate" => self.read.published = Some(map.next_value()?),
                "products" => map.next_value_seed(ProductMap(&mut *self.products))?,
                "terms" => {
                    map.next_value_seed(Terms { read: &mut *self.read, products: &*self.products })?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

struct ProductMap<'a>(&'a mut Products);

#[derive(Deserialize)]
struct JsonProduct {
    #[serde(default, rename = "productFamily")]
    family: String,
    #[serde(default)]
    attributes: Attributes,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Attributes {
    region_code: String,
    usagetype: String,
    instance_type: String,
    operating_system: String,
    tenancy: String,
    pre_installed_sw: String,
    capacitystatus: String,
    operation: String,
    database_engine: String,
    deployment_option: String,
}

impl From<JsonProduct> for Product {
    fn from(product: JsonProduct) -> Self {
        let of = product.attributes;
        Self {
            family: product.family,
            region: of.region_code,
            usage: of.usagetype,
            instance: of.instance_type,
            system: of.operating_system,
            tenancy: of.tenancy,
            software: of.pre_installed_sw,
            capacity: of.capacitystatus,
            operation: of.operation,
            engine: of.database_engine,
            deployment: of.deployment_option,
        }
    }
}

impl<'de> DeserializeSeed<'de> for ProductMap<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ProductMap<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("products by their number")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((sku, product)) = map.next_entry::<String, JsonProduct>()? {
            let product = Product::from(product);
            if let Some(of) = product.what() {
                self.0.insert(sku, (product.region, of));
            }
        }
        Ok(())
    }
}

struct Terms<'a> {
    read: &'a mut Read,
    products: &'a Products,
}

impl<'de> DeserializeSeed<'de> for Terms<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Terms<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("terms by their kind")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Terms { read, products } = self;
        while let Some(kind) = map.next_key::<String>()? {
            if kind == "OnDemand" {
                map.next_value_seed(OnDemand { read: &mut *read, products })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

struct OnDemand<'a> {
    read: &'a mut Read,
    products: &'a Products,
}

#[derive(Deserialize)]
struct Term {
    #[serde(rename = "priceDimensions")]
    dimensions: HashMap<String, Dimension>,
}

#[derive(Deserialize)]
struct Dimension {
    #[serde(default)]
    unit: String,
    #[serde(rename = "pricePerUnit")]
    price: HashMap<String, String>,
}

impl<'de> DeserializeSeed<'de> for OnDemand<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for OnDemand<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("terms by the number of their product")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(sku) = map.next_key::<String>()? {
            let Some((region, of)) = self.products.get(&sku) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let terms: HashMap<String, Term> = map.next_value()?;
            let dimensions = terms.values().flat_map(|term| term.dimensions.values());
            for dimension in dimensions {
                let usd = dimension.price.get("USD").and_then(|usd| of.usd(usd, &dimension.unit));
                let row = usd.map(|usd| Row { region: region.clone(), of: of.clone(), usd });
                self.read.rows.extend(row);
            }
        }
        Ok(())
    }
}
