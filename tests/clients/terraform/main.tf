# The configurations that people have: an instance whose image, subnet and type are looked up, a volume with a key
# that is rotated, its attachment, a snapshot, and a volume of the snapshot. Nothing here names Ebbtide: the endpoint, the Region and the key are in the environment.
#
# The volumes of ebs_block_device are of an instance of their own: the provider takes an attachment beside them for a difference.

variable "size" {
  type    = number
  default = 2
}

variable "kind" {
  type    = string
  default = "m5.large"
}

variable "period" {
  type    = number
  default = 90
}

data "aws_ami" "linux" {
  most_recent = true
  owners      = ["amazon"]

  filter {
    name   = "name"
    values = ["amzn2-ami-minimal-hvm-*"]
  }

  filter {
    name   = "root-device-type"
    values = ["ebs"]
  }

  filter {
    name   = "architecture"
    values = ["x86_64"]
  }
}

data "aws_vpc" "default" {
  default = true
}

data "aws_subnet" "a" {
  vpc_id            = data.aws_vpc.default.id
  availability_zone = "us-east-1a"
}

data "aws_security_group" "default" {
  vpc_id = data.aws_vpc.default.id
  name   = "default"
}

data "aws_ec2_instance_type_offering" "first" {
  filter {
    name   = "instance-type"
    values = ["t3.micro", "t2.micro"]
  }

  preferred_instance_types = ["t2.micro", "t3.micro"]
}

data "aws_ec2_instance_type" "c5" {
  instance_type = "c5.9xlarge"
}

provider "aws" {
  skip_metadata_api_check = true
}

resource "aws_instance" "db" {
  ami                    = data.aws_ami.linux.id
  instance_type          = var.kind
  subnet_id              = data.aws_subnet.a.id
  vpc_security_group_ids = [data.aws_security_group.default.id]

  root_block_device {
    volume_size = 11
    volume_type = "gp3"
    throughput  = 125
    encrypted   = true
  }
}

resource "aws_instance" "small" {
  ami           = "ami-00000000"
  instance_type = data.aws_ec2_instance_type_offering.first.instance_type

  ebs_block_device {
    device_name = "/dev/sdb"
    volume_size = 9
    volume_type = "io1"
    iops        = 100
  }
}

resource "aws_kms_key" "data" {
  description             = "the data of the database"
  deletion_window_in_days = 7
  enable_key_rotation     = true
  rotation_period_in_days = var.period
  tags                    = { Name = "data" }
}

resource "aws_ebs_volume" "data" {
  availability_zone = aws_instance.db.availability_zone
  type              = "gp3"
  size              = var.size
  encrypted         = true
  kms_key_id        = aws_kms_key.data.arn
  tags              = { Name = "data" }
}

resource "aws_volume_attachment" "data" {
  device_name                    = "/dev/sdh"
  volume_id                      = aws_ebs_volume.data.id
  instance_id                    = aws_instance.db.id
  stop_instance_before_detaching = true
}

resource "aws_ebs_snapshot" "nightly" {
  volume_id = aws_ebs_volume.data.id
  tags      = { Name = "nightly" }
}

resource "aws_ebs_volume" "restored" {
  availability_zone = "us-east-1a"
  type              = "gp3"
  snapshot_id       = aws_ebs_snapshot.nightly.id
}

data "aws_ebs_volume" "found" {
  most_recent = true

  filter {
    name   = "tag:Name"
    values = ["data"]
  }

  depends_on = [aws_ebs_volume.data, aws_volume_attachment.data]
}

locals {
  found = data.aws_ebs_volume.found
  root  = aws_instance.db.root_block_device[0].volume_size
}

# What an import names them by.
output "ids" {
  value = {
    instance = aws_instance.db.id
    volume   = aws_ebs_volume.data.id
    key      = aws_kms_key.data.key_id
    snapshot = aws_ebs_snapshot.nightly.id
  }
}

output "found" {
  value = "${local.found.volume_type} ${local.found.iops} ${local.found.size} on ${data.aws_ec2_instance_type.c5.default_vcpus} processors, root ${local.root}"
}
